#include "apps/structure/schema_kinds.hpp"

#include "apps/structure/json_schema.hpp"
#include "core/base/error.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <utility>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr size_t kMostKinds = 2000, kMostFollowed = 32;
constexpr std::string_view kNotHeld = "is a keyword that values in the model's format of calls are not held to";

struct KindRow {
    std::string_view type;
    ValueKind kind;
    std::vector<std::string_view> keywords;
};

const std::vector<KindRow>& kind_rows() {
    static const std::vector<std::string_view> bounds = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
                                                         "multipleOf"};
    static const std::vector<KindRow> rows = {
        {"string", ValueKind::kText, {"minLength", "maxLength", "pattern", "format"}},
        {"integer", ValueKind::kInteger, bounds},
        {"number", ValueKind::kNumber, bounds},
        {"boolean", ValueKind::kBoolean, {}},
        {"null", ValueKind::kNull, {}},
        {"array", ValueKind::kList, {"items", "additionalItems", "prefixItems", "minItems", "maxItems"}},
        {"object",
         ValueKind::kObject,
         {"properties", "patternProperties", "additionalProperties", "required", "minProperties", "maxProperties"}},
    };
    return rows;
}

bool says_nothing(std::string_view keyword) {
    return keyword == "$defs" || keyword == "definitions" || keyword == "$schema";
}

bool is_of(const json::value& value, std::string_view type) {
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    if (type == "number") return value.is_number();
    return value.is_int64() || value.is_uint64();
}

class Finder {
  public:
    explicit Finder(const json::value& root) : root_(root) {}

    void add(const json::value& schema, const std::string& place, size_t followed) {
        if (followed > kMostFollowed) refuse_keyword(place, "$ref", "refers to itself");
        if (schema.is_bool()) {
            if (schema.get_bool()) add(json::object(), place, followed);
            return;
        }
        const json::object& object = schema.get_object();
        if (const json::value* const reference = object.if_contains("$ref")) {
            check_alone(object, "$ref", place);
            const json::value* const target = referred(std::string_view(reference->get_string()), root_);
            if (!target || (!target->is_object() && !target->is_bool()))
                refuse_keyword(place, "$ref", "refers to no schema");
            return add(*target, place, followed + 1);
        }
        if (const json::value* const all = object.if_contains("allOf")) {
            check_alone(object, "allOf", place);
            if (all->get_array().size() != 1) refuse_keyword(place, "allOf", kNotHeld);
            return add(all->get_array()[0], place + "/allOf/0", followed + 1);
        }
        for (const std::string_view several : {"anyOf", "oneOf"}) {
            const json::value* const list = object.if_contains(several);
            if (!list) continue;
            check_alone(object, several, place);
            add_several(list->get_array(), several == "oneOf", fmt::format("{}/{}", place, several), followed + 1);
            return;
        }
        const std::vector<std::string_view> types = types_of(object, place);
        if (const json::value* const list = object.if_contains("enum")) {
            check_alone(object, "enum", place);
            if (!list->is_array()) refuse_keyword(place, "enum", "expected a list");
            for (const json::value& one : list->get_array()) add_constant(one, types, place);
            return;
        }
        if (const json::value* const constant = object.if_contains("const")) {
            check_alone(object, "const", place);
            return add_constant(*constant, types, place);
        }
        add_types(object, types, place);
    }

    std::vector<SchemaKind> found;

  private:
    // With a type at most, and what says nothing.
    static void check_alone(const json::object& object, std::string_view keyword, const std::string& place) {
        const bool typed = keyword == "enum" || keyword == "const";
        for (const auto& [key, value] : object) {
            const std::string_view name(key.data(), key.size());
            if (name == keyword || says_nothing(name) || (typed && name == "type")) continue;
            refuse_keyword(place, name, fmt::format("beside {} {}", keyword, kNotHeld));
        }
    }

    static std::vector<std::string_view> types_of(const json::object& object, const std::string& place) {
        std::vector<std::string_view> types;
        const auto add = [&](const json::value& value) {
            const bool known = value.is_string() && std::ranges::any_of(kind_rows(), [&](const KindRow& row) {
                                   return row.type == std::string_view(value.get_string());
                               });
            if (!known) refuse_keyword(place, "type", "expected the name of a type, or a list of such names");
            types.emplace_back(value.get_string());
        };
        const json::value* const type = object.if_contains("type");
        if (type && type->is_array()) {
            for (const json::value& one : type->get_array()) add(one);
            if (types.empty()) refuse_keyword(place, "type", "the list is empty");
        } else if (type) {
            add(*type);
        }
        return types;
    }

    void add_constant(const json::value& value, const std::vector<std::string_view>& types, const std::string& place) {
        const bool fits = types.empty() || std::ranges::any_of(types, [&](auto type) { return is_of(value, type); });
        if (fits) put({ValueKind::kConstant, {}, value, place});
    }

    // Without a type: those for which something is said, or all.
    void add_types(const json::object& object, std::vector<std::string_view> types, const std::string& place) {
        const auto said = [&](const KindRow& row) {
            return std::ranges::any_of(row.keywords, [&](auto keyword) { return object.contains(keyword); });
        };
        const bool all = types.empty() && std::ranges::none_of(kind_rows(), said);
        for (const KindRow& row : kind_rows()) {
            // A number may be whole.
            const bool covered =
                row.kind == ValueKind::kInteger && (types.empty() || std::ranges::find(types, "number") != types.end());
            const bool asked = types.empty() ? all || said(row) : std::ranges::find(types, row.type) != types.end();
            if (!asked || covered) continue;
            SchemaKind made{row.kind, {}, {}, place};
            for (const std::string_view keyword : row.keywords)
                if (const json::value* const value = object.if_contains(keyword)) made.keywords[keyword] = *value;
            put(std::move(made));
        }
    }

    void add_several(const json::array& list, bool one_alone, const std::string& place, size_t followed) {
        std::set<std::string> before;
        for (size_t i = 0; i < list.size(); ++i) {
            const size_t first = found.size();
            add(list[i], fmt::format("{}/{}", place, i), followed);
            if (!one_alone) continue;
            std::set<std::string> these;
            for (size_t at = first; at < found.size(); ++at) these.insert(family(found[at]));
            for (const std::string& one : these) {
                const std::string kind = one.substr(0, 1);
                const bool twice =
                    before.contains(one) || before.contains(kind) ||
                    (one.size() == 1 && std::ranges::any_of(before, [&](auto& old) { return old.starts_with(kind); }));
                if (twice) refuse_keyword(place, "", "its schemas may have the same value: use anyOf");
            }
            before.merge(these);
        }
    }

    // A letter of the type, and the value of a constant.
    static std::string family(const SchemaKind& one) {
        switch (one.kind) {
            case ValueKind::kText:
                return "s";
            case ValueKind::kInteger:
            case ValueKind::kNumber:
                return "n";
            case ValueKind::kBoolean:
                return "b";
            case ValueKind::kNull:
                return "0";
            case ValueKind::kList:
                return "l";
            case ValueKind::kObject:
                return "o";
            case ValueKind::kConstant:
                break;
        }
        const json::value& value = one.constant;
        const char letter = value.is_string()   ? 's'
                            : value.is_number() ? 'n'
                            : value.is_bool()   ? 'b'
                            : value.is_null()   ? '0'
                            : value.is_array()  ? 'l'
                                                : 'o';
        // A whole number may be written in two ways.
        return letter + (value.is_number() ? fmt::format("{}", value.to_number<double>()) : json::serialize(value));
    }

    void put(SchemaKind kind) {
        if (found.size() >= kMostKinds)
            fail(TSR_INVALID_ARGUMENT, "the schema's {} has more than {} kinds of values", kind.place, kMostKinds);
        found.push_back(std::move(kind));
    }

    const json::value& root_;
};

}  // namespace

const json::value* referred(std::string_view reference, const json::value& root) {
    if (!reference.starts_with('#')) return nullptr;
    std::string pointer;
    for (size_t i = 1; i < reference.size(); ++i) {
        if (reference[i] == '%' && i + 2 < reference.size()) {
            const std::string digits(reference.substr(i + 1, 2));
            pointer += static_cast<char>(std::strtoul(digits.c_str(), nullptr, 16));
            i += 2;
        } else {
            pointer += reference[i];
        }
    }
    json::error_code error;
    return root.find_pointer(pointer, error);
}

std::vector<SchemaKind> kinds_of(const json::value& schema, const json::value& root, const std::string& place) {
    Finder finder(root);
    finder.add(schema, place, 0);
    return std::move(finder.found);
}

}  // namespace tessera::structure
