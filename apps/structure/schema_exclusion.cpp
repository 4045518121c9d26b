#include "apps/structure/schema_exclusion.hpp"

#include "apps/structure/schema_keywords.hpp"
#include "core/base/error.hpp"

#include <boost/json/object.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <vector>

namespace tessera::structure {
namespace {

namespace json = boost::json;
using Target = SchemaReferences::Target;

// Of looks at schemas and comparisons of two; some hundred thousand take tenths of a second.
constexpr size_t kMostExclusionSteps = 200'000, kMostExclusionDepth = 16;
// What takes about as long as one step: bytes of a place, or values or names compared.
constexpr size_t kBytesOfStep = 64, kValuesOfStep = 16;

Target below(const Target& schema, std::string_view keyword, const json::value& inner, std::string_view name = {}) {
    std::string place = fmt::format("{}/{}", schema.place, keyword);
    if (!name.empty()) place += "/" + pointer_part(name);
    return {&inner, std::move(place)};
}

// The array of a keyword; null: there is none, or it is empty.
const json::array* list_at(const Target& schema, std::string_view keyword) {
    const json::value* const list = schema.schema->get_object().if_contains(keyword);
    return list && list->is_array() && !list->get_array().empty() ? &list->get_array() : nullptr;
}

// Whether the test holds for one of the schemas in the array of a keyword.
template <typename Test>
bool any_at(const Target& schema, std::string_view keyword, Test test) {
    const json::array* const list = list_at(schema, keyword);
    for (size_t i = 0; list && i < list->size(); ++i)
        if (test(below(schema, keyword, (*list)[i], std::to_string(i)))) return true;
    return false;
}

// Whether there are schemas in the array of a keyword and the test holds for all.
template <typename Test>
bool all_at(const Target& schema, std::string_view keyword, Test test) {
    return list_at(schema, keyword) && !any_at(schema, keyword, [&](const Target& one) { return !test(one); });
}

// The values of const and enum; nothing: others are accepted, too.
std::optional<std::vector<const json::value*>> values_of(const json::object& schema) {
    std::vector<const json::value*> made;
    if (const json::value* const constant = schema.if_contains("const")) {
        made.push_back(constant);
        return made;
    }
    const json::value* const list = schema.if_contains("enum");
    if (!list || !list->is_array()) return std::nullopt;
    for (const json::value& one : list->get_array()) made.push_back(&one);
    return made;
}

std::optional<double> bound_at(const json::object& schema, std::string_view keyword) {
    const json::value* const found = schema.if_contains(keyword);
    return found && found->is_number() ? std::optional(found->to_number<double>()) : std::nullopt;
}

double least_of(const json::object& schema, std::string_view keyword) {
    return bound_at(schema, keyword).value_or(-std::numeric_limits<double>::infinity());
}

double most_of(const json::object& schema, std::string_view keyword) {
    return bound_at(schema, keyword).value_or(std::numeric_limits<double>::infinity());
}

// Whether all values of a lie below all of b.
bool is_below(const json::object& a, const json::object& b, std::string_view most, std::string_view least) {
    return most_of(a, most) < least_of(b, least);
}

bool numbers_differ(const json::object& a, const json::object& b) {
    const auto ends_before = [](const json::object& x, const json::object& y) {
        const double most = std::min(most_of(x, "maximum"), most_of(x, "exclusiveMaximum")),
                     least = std::max(least_of(y, "minimum"), least_of(y, "exclusiveMinimum"));
        const bool open = most_of(x, "exclusiveMaximum") == most || least_of(y, "exclusiveMinimum") == least;
        return most < least || (open && most == least);
    };
    return ends_before(a, b) || ends_before(b, a);
}

std::set<std::string_view> required_names(const json::object& schema) {
    std::set<std::string_view> names;
    const json::value* const list = schema.if_contains("required");
    if (!list || !list->is_array()) return names;
    for (const json::value& one : list->get_array())
        if (one.is_string()) names.insert(one.get_string());
    return names;
}

std::set<std::string_view> types_of(const json::object& schema) {
    const std::vector<std::string_view> named = named_types(schema);
    const std::span<const std::string_view> all = schema_types();
    std::set<std::string_view> types(named.begin(), named.end());
    if (types.empty()) types.insert(all.begin(), all.end());
    if (types.contains("number")) types.insert("integer");
    return types;
}

}  // namespace

bool SchemaExclusion::exclude_each_other(std::span<const Target> schemas) {
    for (size_t i = 0; i < schemas.size(); ++i)
        for (size_t k = 0; k < i; ++k)
            if (!exclude(schemas[i], schemas[k], 0)) return false;
    return true;
}

std::string SchemaExclusion::find_tag(std::span<const Target> schemas, std::string_view first) {
    // A property says nothing of other values.
    if (!std::ranges::all_of(schemas, [&](const Target& one) { return accepts_only_objects(one, 0); })) return {};
    std::vector<std::string> names;
    if (!first.empty()) names.emplace_back(first);
    // Properties of the first schema, or of what it refers to.
    Target at = schemas.front();
    for (size_t i = 0; i < kMostExclusionDepth && at.schema->is_object(); ++i) {
        const json::value* const properties = at.schema->get_object().if_contains("properties");
        if (properties && properties->is_object())
            for (const auto& [key, value] : properties->get_object()) names.emplace_back(key);
        Target next;
        if (!resolve(at, next)) break;
        at = std::move(next);
    }
    for (const std::string& name : names) {
        std::vector<Target> members;
        for (const Target& schema : schemas) {
            Target found;
            if (!property_of(schema, name, found, 0)) break;
            members.push_back(std::move(found));
        }
        if (members.size() == schemas.size() && exclude_each_other(members)) return name;
    }
    return {};
}

bool SchemaExclusion::may_look(const Target& schema, size_t depth) {
    steps_ += 1 + schema.place.size() / kBytesOfStep;
    return steps_ <= kMostExclusionSteps && depth <= kMostExclusionDepth;
}

bool SchemaExclusion::resolve(const Target& schema, Target& found) const {
    const json::object* const object = schema.schema->if_object();
    const json::value* const reference = object ? object->if_contains("$ref") : nullptr;
    if (!reference || !reference->is_string()) return false;
    try {
        found = references_.resolve(std::string_view(reference->get_string()), schema.place);
        return true;
    } catch (const Error&) {
        return false;
    }
}

// The schema of a property, also where a reference or allOf declares it.
bool SchemaExclusion::property_of(const Target& schema, std::string_view name, Target& found, size_t depth) {
    const json::object* const object = schema.schema->if_object();
    if (!may_look(schema, depth) || !object) return false;
    const json::value* const properties = object->if_contains("properties");
    const json::value* const member =
        properties && properties->is_object() ? properties->get_object().if_contains(name) : nullptr;
    if (member) {
        found = below(schema, "properties", *member, name);
        return true;
    }
    if (Target target; resolve(schema, target) && property_of(target, name, found, depth + 1)) return true;
    return any_at(schema, "allOf", [&](const Target& part) { return property_of(part, name, found, depth + 1); });
}

bool SchemaExclusion::exclude(const Target& a, const Target& b, size_t depth) {
    if (!may_look(a, depth) || !may_look(b, depth)) return false;
    if (accepts_nothing(*a.schema) || accepts_nothing(*b.schema)) return true;
    if (!a.schema->is_object() || !b.schema->is_object()) return false;
    return excludes_here(a, b, depth) || excludes_here(b, a, depth) || values_are_rejected(a, b, depth) ||
           values_are_rejected(b, a, depth) || exclude_as_objects(a, b, depth);
}

// What a refers to or is put together of.
bool SchemaExclusion::excludes_here(const Target& a, const Target& b, size_t depth) {
    if (Target target; resolve(a, target) && exclude(target, b, depth + 1)) return true;
    const auto excludes_b = [&](const Target& one) { return exclude(one, b, depth + 1); };
    return any_at(a, "allOf", excludes_b) || all_at(a, "anyOf", excludes_b) || all_at(a, "oneOf", excludes_b);
}

bool SchemaExclusion::values_are_rejected(const Target& a, const Target& b, size_t depth) {
    const auto values = values_of(a.schema->get_object());
    return values && std::ranges::all_of(*values, [&](const json::value* one) { return rejects(b, *one, depth + 1); });
}

bool SchemaExclusion::accepts_only_objects(const Target& schema, size_t depth) {
    const json::object* const object = schema.schema->if_object();
    if (!may_look(schema, depth) || !object) return false;
    const std::vector<std::string_view> types = named_types(*object);
    if (types.size() == 1 && types.front() == "object") return true;
    if (Target target; resolve(schema, target) && accepts_only_objects(target, depth + 1)) return true;
    return any_at(schema, "allOf", [&](const Target& part) { return accepts_only_objects(part, depth + 1); });
}

bool SchemaExclusion::exclude_as_objects(const Target& a, const Target& b, size_t depth) {
    const json::object &x = a.schema->get_object(), &y = b.schema->get_object();
    std::set<std::string_view> both;
    const std::set<std::string_view> others = types_of(y);
    for (const std::string_view type : types_of(x))
        if (others.contains(type)) both.insert(type);
    const auto only = [&](std::initializer_list<std::string_view> types) {
        return std::ranges::all_of(both, [&](auto one) { return std::ranges::find(types, one) != types.end(); });
    };
    if (both.empty()) return true;
    if (only({"integer", "number"})) return numbers_differ(x, y);
    if (only({"string"})) return is_below(x, y, "maxLength", "minLength") || is_below(y, x, "maxLength", "minLength");
    if (only({"array"})) return is_below(x, y, "maxItems", "minItems") || is_below(y, x, "maxItems", "minItems");
    if (!only({"object"})) return false;
    const auto forbids = [](const json::object& schema, std::string_view name) {
        const json::value* const properties = schema.if_contains("properties");
        const json::value* const member =
            properties && properties->is_object() ? properties->get_object().if_contains(name) : nullptr;
        if (member) return accepts_nothing(*member);
        const json::value* const others_are = schema.if_contains("additionalProperties");
        return others_are && accepts_nothing(*others_are) && !schema.contains("patternProperties");
    };
    const std::set<std::string_view> of_x = required_names(x), of_y = required_names(y);
    std::set<std::string_view> names = of_x;
    names.insert(of_y.begin(), of_y.end());
    steps_ += names.size() / kValuesOfStep;
    return std::ranges::any_of(names, [&](std::string_view name) {
        const bool in_a = of_x.contains(name), in_b = of_y.contains(name);
        if ((in_a && forbids(y, name)) || (in_b && forbids(x, name))) return true;
        Target of_a, of_b;
        return property_of(a, name, of_a, 0) && property_of(b, name, of_b, 0) && exclude(of_a, of_b, depth + 1);
    });
}

// Whether the schema certainly does not accept the value.
bool SchemaExclusion::rejects(const Target& schema, const json::value& value, size_t depth) {
    if (!may_look(schema, depth)) return false;
    if (accepts_nothing(*schema.schema)) return true;
    const json::object* const object = schema.schema->if_object();
    if (!object) return false;
    if (const auto values = values_of(*object)) {
        steps_ += values->size() / kValuesOfStep;
        if (std::ranges::none_of(*values, [&](const json::value* one) { return equal_values(*one, value); }))
            return true;
    }
    const std::vector<std::string_view> types = named_types(*object);
    if (!types.empty() && std::ranges::none_of(types, [&](auto type) { return is_of_type(value, type); })) return true;
    if (Target target; resolve(schema, target) && rejects(target, value, depth + 1)) return true;
    const auto rejects_it = [&](const Target& one) { return rejects(one, value, depth + 1); };
    if (any_at(schema, "allOf", rejects_it) || all_at(schema, "anyOf", rejects_it)) return true;
    if (value.is_number()) {
        const json::object exactly{{"minimum", value}, {"maximum", value}};
        return numbers_differ(*object, exactly);
    }
    if (!value.is_object()) return false;
    const json::object& members = value.get_object();
    if (const json::value* const required = object->if_contains("required"); required && required->is_array()) {
        for (const json::value& name : required->get_array())
            if (name.is_string() && !members.contains(name.get_string())) return true;
    }
    const json::value* const properties = object->if_contains("properties");
    if (!properties || !properties->is_object()) return false;
    return std::ranges::any_of(members, [&](const auto& member) {
        const json::value* const own = properties->get_object().if_contains(member.key());
        return own &&
               rejects(below(schema, "properties", *own, std::string_view(member.key())), member.value(), depth + 1);
    });
}

}  // namespace tessera::structure
