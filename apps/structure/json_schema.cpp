#include "apps/structure/json_schema.hpp"

#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/schema_bounds.hpp"
#include "apps/structure/schema_exclusion.hpp"
#include "apps/structure/schema_formats.hpp"
#include "apps/structure/schema_keywords.hpp"
#include "apps/structure/schema_references.hpp"
#include "core/base/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr size_t kMostSchemaBytes = 1 << 20, kMostSchemaDepth = 64, kMostSchemas = 20'000;
constexpr size_t kMostPlaceBytes = 32 << 20;  // of the places of all schemas within one
constexpr double kMostRepetitions = 100'000;

constexpr std::string_view kNotEnforced = "cannot be enforced; leave it out, or send \"unenforced\": \"allow\"";

// llguidance's options: few spaces, as a model might never end them; each name has one spelling, so that none is taken
// for another one's.
constexpr std::string_view kGuidance =
    R"json({"whitespace_pattern":"( |\n{1,2}[ \t]{0,40})","json_allowed_escapes":"nrbtf\\\""})json";

// How a schema is read at one place, besides what it says.
struct Variant {
    bool closed = false;   // SchemaOptions::closed holds here
    std::string tag = {};  // a property that is required as well

    auto operator<=>(const Variant&) const = default;
};

bool lists(const json::value* list, std::string_view name) {
    return list && list->is_array() && std::ranges::any_of(list->get_array(), [&](const json::value& one) {
               return one.is_string() && std::string_view(one.get_string()) == name;
           });
}

const json::object* object_at(const json::object& schema, std::string_view keyword) {
    const json::value* const found = schema.if_contains(keyword);
    return found ? found->if_object() : nullptr;
}

bool has_any(const json::object& schema, std::initializer_list<std::string_view> keywords) {
    return std::ranges::any_of(keywords, [&](auto keyword) { return schema.contains(keyword); });
}

// Keywords that add properties to those of the schema they stand in.
bool is_composed(const json::object& schema) {
    return has_any(schema, {"allOf", "anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef", "if", "dependentSchemas",
                            "dependencies"});
}

bool all_finite(const json::value& value) {
    if (value.is_double()) return std::isfinite(value.get_double());
    if (value.is_array()) return std::ranges::all_of(value.get_array(), all_finite);
    return !value.is_object() ||
           std::ranges::all_of(value.get_object(), [](const auto& member) { return all_finite(member.value()); });
}

class SchemaReader {
  public:
    SchemaReader(const json::value& document, const SchemaOptions& options)
        : document_(document), options_(options), references_(document), exclusion_(references_) {}

    ReadSchema run() {
        json::value made = read(document_, "", 0, {options_.closed});
        // Reading one may lead to others.
        for (size_t i = 0; i < left_.size(); ++i) {
            const auto [target, variant, name] = left_[i];
            definitions_[name] = read_tagged(*target.schema, target.place, 1, variant);
        }
        check_loops(made);
        if (!definitions_.empty()) made.get_object()["$defs"] = std::move(definitions_);
        return {std::move(made), std::move(unenforced_)};
    }

  private:
    struct Left {
        SchemaReferences::Target target;
        Variant variant;
        std::string name;
    };

    static std::string below(const std::string& place, std::string_view keyword) {
        return fmt::format("{}/{}", place, pointer_part(keyword));
    }

    void note(const std::string& place, std::string_view keyword) {
        const std::string whole = below(place, keyword).substr(1);
        if (noted_.insert(whole).second) unenforced_.push_back(whole);
    }

    // The keyword is not part of the result. Throws where it has to be.
    void leave_out(const std::string& place, std::string_view keyword, std::string_view why) {
        if (!options_.allow_unenforced) refuse_keyword(place, keyword, why);
        note(place, keyword);
    }

    // Each has the names of all that it is in.
    void count_place(const std::string& place) {
        place_bytes_ += place.size();
        if (place_bytes_ > kMostPlaceBytes)
            fail(TSR_INVALID_ARGUMENT, "the schema has too many schemas below long names; make the names shorter");
    }

    json::value read(const json::value& schema, const std::string& place, size_t depth, const Variant& variant) {
        if (depth > kMostSchemaDepth)
            fail(TSR_INVALID_ARGUMENT, "the schema is nested deeper than {}", kMostSchemaDepth);
        if (++count_ > kMostSchemas)
            fail(TSR_INVALID_ARGUMENT, "the schema has more than {} schemas within it", kMostSchemas);
        count_place(place);
        if (schema.is_bool()) return schema;
        if (!schema.is_object()) {
            fail(TSR_INVALID_ARGUMENT, "the schema{}{}: expected an object, true or false", place.empty() ? "" : "'s ",
                 place.empty() ? "" : place.substr(1));
        }
        if (accepts_nothing(schema)) return false;
        const json::object& given = schema.get_object();
        Made made;
        for (const auto& [key, value] : given) {
            const std::string_view name(key.data(), key.size());
            if (find_schema_keyword(name))
                keyword(name, value, given, place, depth, variant, made);
            else
                annotation(name, place);
        }
        text_keywords(given, place, made);
        if (KeywordFault fault = write_bounds(given, made.schema); !fault.keyword.empty())
            leave_out(place, fault.keyword, fault.why);
        close(given, variant, made.schema);
        if (!made.also.empty()) {
            json::value& all = made.schema["allOf"];
            if (!all.is_array()) all.emplace_array();
            for (json::value& one : made.also) all.get_array().push_back(std::move(one));
        }
        return std::move(made.schema);
    }

    // A schema in the making.
    struct Made {
        json::object schema;
        std::vector<json::value> also;  // further schemas that have to hold

        void put(std::string_view keyword, json::value value) {
            if (schema.contains(keyword))
                also.push_back(json::object{{keyword, std::move(value)}});
            else
                schema[keyword] = std::move(value);
        }
    };

    void annotation(std::string_view name, const std::string& place) {
        if (name == "x-guidance") return leave_out(place, name, "is not offered");
        if (const SchemaKeyword* const meant = find_misspelt_keyword(name))
            leave_out(place, name, fmt::format("is no keyword of JSON Schema; did you mean '{}'?", meant->name));
    }

    void keyword(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
                 size_t depth, const Variant& variant, Made& made) {
        const Variant inner{options_.closed, {}};
        if (name == "type") {
            type(value, place, made);
        } else if (name == "enum" || name == "const") {
            constant(name, value, place, made);
        } else if (name == "properties" || name == "patternProperties") {
            members(name, value, place, depth, made);
        } else if (name == "required") {
            required(value, place, made);
        } else if (name == "additionalProperties") {
            made.schema[name] = read(value, below(place, name), depth + 1, inner);
        } else if (name == "items" || name == "prefixItems") {
            items(name, value, given, place, depth, made);
        } else if (name == "additionalItems") {
            // Without a list of items it means nothing.
            const json::value* const list = given.if_contains("items");
            if (list && list->is_array()) made.schema["items"] = read(value, below(place, name), depth + 1, inner);
        } else if (name == "minItems" || name == "maxItems" || name == "minLength" || name == "maxLength" ||
                   name == "minProperties" || name == "maxProperties") {
            count(name, value, given, place, made);
        } else if (name == "anyOf" || name == "allOf" || name == "oneOf") {
            list(name, value, given, place, depth, variant, made);
        } else if (name == "$ref" || name == "$dynamicRef" || name == "$recursiveRef") {
            reference(name, value, given, place, variant, made);
        } else {
            other(name, value, given, place, depth, made);
        }
    }

    void type(const json::value& value, const std::string& place, Made& made) {
        const auto known = [](const json::value& one) {
            return one.is_string() &&
                   std::ranges::find(schema_types(), std::string_view(one.get_string())) != schema_types().end();
        };
        const bool good = value.is_array() ? !value.get_array().empty() && std::ranges::all_of(value.get_array(), known)
                                           : known(value);
        if (!good)
            return leave_out(place, "type",
                             fmt::format("expected one of {}, or an array of them", fmt::join(schema_types(), ", ")));
        made.schema["type"] = value;
    }

    // Strings have no escapes by number, so such characters cannot be written.
    static bool can_be_written(std::string_view text) {
        constexpr std::string_view kNamed = "\n\r\t\b\f";
        return std::ranges::none_of(text, [&](char c) {
            return (static_cast<unsigned char>(c) < 0x20 && kNamed.find(c) == kNamed.npos) || c == 0x7f;
        });
    }
    static bool can_be_written(const json::value& value) {
        if (value.is_string()) return can_be_written(std::string_view(value.get_string()));
        if (value.is_array())
            return std::ranges::all_of(value.get_array(), [](const json::value& one) { return can_be_written(one); });
        return !value.is_object() || std::ranges::all_of(value.get_object(), [](const auto& member) {
            return can_be_written(std::string_view(member.key())) && can_be_written(member.value());
        });
    }

    void constant(std::string_view name, const json::value& value, const std::string& place, Made& made) {
        constexpr std::string_view kCharacter = "has a control character that answers cannot have";
        const auto fits = [](const json::value& one) { return can_be_written(one) && all_finite(one); };
        if (name == "const") {
            if (!all_finite(value)) return leave_out(place, name, "has a number that is too large for a double");
            if (!can_be_written(value)) return leave_out(place, name, kCharacter);
            made.put(name, value);
            return;
        }
        if (!value.is_array() || value.get_array().empty())
            return leave_out(place, name, "expected an array of at least one value");
        if (!std::ranges::all_of(value.get_array(), fits)) return leave_out(place, name, kCharacter);
        made.put(name, value);
    }

    void members(std::string_view name, const json::value& value, const std::string& place, size_t depth, Made& made) {
        if (!value.is_object()) return leave_out(place, name, "expected an object");
        const std::string here = below(place, name);
        json::object all;
        for (const auto& [key, member] : value.get_object()) {
            const std::string_view text(key.data(), key.size());
            if (name == "properties") {
                if (!can_be_written(text)) {
                    leave_out(place, name, "has a name with a control character that answers cannot have");
                    continue;
                }
                all[key] = read(member, below(here, text), depth + 1, {options_.closed});
            } else if (const auto pattern = translated(text, here, text)) {
                all[*pattern] = read(member, below(here, text), depth + 1, {options_.closed});
            }
        }
        made.schema[name] = std::move(all);
    }

    // Nothing: it has been left out.
    std::optional<std::string> translated(std::string_view pattern, const std::string& place,
                                          std::string_view keyword) {
        try {
            return translate_pattern(pattern);
        } catch (const Error& error) {
            leave_out(place, keyword, error.what());
            return std::nullopt;
        }
    }

    void required(const json::value& value, const std::string& place, Made& made) {
        // Draft 3 has true and false, of the schema's own property.
        if (value.is_bool() && !value.get_bool()) return;
        const bool good = value.is_array() && std::ranges::all_of(value.get_array(), [](const json::value& one) {
                              return one.is_string() && can_be_written(std::string_view(one.get_string()));
                          });
        if (!good) return leave_out(place, "required", "expected an array of names of properties");
        if (!value.get_array().empty()) made.schema["required"] = value;
    }

    void items(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
               size_t depth, Made& made) {
        const std::string here = below(place, name);
        if (!value.is_array()) {
            if (name == "prefixItems") return leave_out(place, name, "expected an array of schemas");
            made.schema[name] = read(value, here, depth + 1, {options_.closed});
            return;
        }
        if (name == "items" && given.contains("prefixItems")) return leave_out(place, name, "expected a schema");
        json::array all;
        for (size_t i = 0; i < value.get_array().size(); ++i)
            all.push_back(read(value.get_array()[i], fmt::format("{}/{}", here, i), depth + 1, {options_.closed}));
        if (!all.empty()) made.schema["prefixItems"] = std::move(all);
    }

    void count(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
               Made& made) {
        double number = value.is_number() ? value.to_number<double>() : -1;
        if (number < 0 || number != std::floor(number))
            return leave_out(place, name, "expected a whole number that is not negative");
        if (number > kMostRepetitions) {
            if (name.starts_with("min"))
                return leave_out(place, name, fmt::format("is larger than {}", kMostRepetitions));
            number = kMostRepetitions;
        }
        // Names that are not declared may come twice, and would count twice.
        if (name == "minProperties") {
            const json::value* const needed = given.if_contains("required");
            const size_t declared = needed && needed->is_array() ? needed->get_array().size() : 0;
            if (number > static_cast<double>(declared + 1))
                return leave_out(place, name,
                                 "more than one property besides those in \"required\" cannot be enforced");
        }
        made.schema[name] = static_cast<int64_t>(number);
    }

    // Whether schemas of a list, or of a reference, may be closed: nothing else adds properties to theirs.
    static bool may_close(std::string_view name, const json::object& given) {
        if (has_any(given, {"properties", "patternProperties", "additionalProperties", "if", "dependentSchemas"}))
            return false;
        const json::value* const all = given.if_contains("allOf");
        size_t applicators = 0;
        for (const std::string_view one : {"anyOf", "oneOf", "$ref", "$dynamicRef", "$recursiveRef"})
            applicators += given.contains(one) ? 1 : 0;
        if (name == "allOf") return all->is_array() && all->get_array().size() == 1 && applicators == 0;
        return applicators == 1 && !all;
    }

    // An empty string where there is none.
    static std::string_view discriminating_property(const json::object& given) {
        const json::object* const discriminator = object_at(given, "discriminator");
        const json::value* const name = discriminator ? discriminator->if_contains("propertyName") : nullptr;
        return name && name->is_string() ? std::string_view(name->get_string()) : std::string_view();
    }

    void list(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
              size_t depth, const Variant& variant, Made& made) {
        if (!value.is_array() || value.get_array().empty())
            return leave_out(place, name, "expected an array of at least one schema");
        const std::string here = below(place, name);
        std::vector<SchemaReferences::Target> all;
        for (size_t i = 0; i < value.get_array().size(); ++i)
            all.push_back({&value.get_array()[i], fmt::format("{}/{}", here, i)});
        Variant inner{variant.closed && may_close(name, given), {}};
        // What reads an answer by the property that a discriminator names needs it, whether or not it is required.
        const std::string_view named = name == "allOf" ? std::string_view() : discriminating_property(given);
        if (!named.empty() && exclusion_.find_tag(all, named) == named) inner.tag = named;
        if (name == "oneOf" && inner.tag.empty() && !exclusion_.exclude_each_other(all)) {
            inner.tag = exclusion_.find_tag(all, "");
            if (inner.tag.empty())
                leave_out(place, name,
                          "its schemas may accept the same value, which cannot be excluded; use anyOf, or a required "
                          "property with a different constant in each");
        }
        json::array made_list;
        for (const auto& [schema, where] : all) made_list.push_back(read_tagged(*schema, where, depth + 1, inner));
        made.put(name == "allOf" ? "allOf" : "anyOf", std::move(made_list));
    }

    json::value read_tagged(const json::value& schema, const std::string& place, size_t depth, const Variant& variant) {
        json::value made = read(schema, place, depth, variant);
        if (variant.tag.empty() || !made.is_object()) return made;
        // A lone reference has the tag in what it refers to.
        if (made.get_object().size() == 1 && made.get_object().contains("$ref")) return made;
        json::value& required = made.get_object()["required"];
        if (!required.is_array()) required.emplace_array();
        if (!lists(&required, variant.tag)) required.get_array().push_back(json::value(variant.tag));
        return made;
    }

    void reference(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
                   const Variant& variant, Made& made) {
        if (!value.is_string()) return leave_out(place, name, "expected a string");
        const std::string_view text = value.get_string();
        SchemaReferences::Target target;
        try {
            target = name == "$ref" ? references_.resolve(text, place) : references_.resolve_dynamic(text, place);
        } catch (const Error& error) {
            return leave_out(place, name, error.what());
        }
        count_place(target.place);
        const bool lone = std::ranges::none_of(given, [&](const auto& member) {
            const std::string_view other(member.key());
            return other != name && other != "$defs" && other != "definitions" && other != "$schema" &&
                   find_schema_keyword(other);
        });
        const Variant its{variant.closed && may_close(name, given), lone ? variant.tag : std::string()};
        made.put("$ref", json::value(definition(std::move(target), its)));
    }

    // "#/$defs/NAME".
    std::string definition(SchemaReferences::Target target, const Variant& variant) {
        if (target.place.empty() && variant == Variant{options_.closed}) return "#";
        const auto [known, added] = names_.try_emplace({target.place, variant});
        if (added) {
            known->second = new_name(target.place);
            left_.push_back({std::move(target), variant, known->second});
        }
        return "#/$defs/" + known->second;
    }

    std::string new_name(std::string_view place) {
        std::string name(place.substr(std::min(place.rfind('/') + 1, place.size())));
        constexpr size_t kLongest = 60;
        if (name.size() > kLongest) name.resize(kLongest);
        for (char& c : name) {
            const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
            if (!plain) c = '_';
        }
        if (name.empty()) name = "root";
        std::string made = name;
        size_t& last = last_numbers_.try_emplace(name, 1).first->second;
        while (!taken_.insert(made).second) made = fmt::format("{}_{}", name, ++last);
        return made;
    }

    // Keywords that are enforced only where they say little.
    void other(std::string_view name, const json::value& value, const json::object& given, const std::string& place,
               size_t depth, Made& made) {
        const auto has = [&](std::string_view keyword) { return given.contains(keyword); };
        const bool is_empty =
            (value.is_object() && value.get_object().empty()) || (value.is_array() && value.get_array().empty());
        if (name == "not") {
            if (!accepts_nothing(value)) leave_out(place, name, kNotEnforced);
        } else if (name == "if") {
            if (has("then") || has("else")) leave_out(place, name, kNotEnforced);
        } else if (name == "dependentRequired" || name == "dependentSchemas" || name == "dependencies") {
            if (!is_empty) leave_out(place, name, kNotEnforced);
        } else if (name == "contains") {
            const json::value* const least = given.if_contains("minContains");
            const bool none = least && least->is_number() && least->to_number<double>() == 0 && !has("maxContains");
            if (!none) leave_out(place, name, kNotEnforced);
        } else if (name == "uniqueItems") {
            const json::value* const most = given.if_contains("maxItems");
            const bool one = most && most->is_number() && most->to_number<double>() <= 1;
            if (value != false && !one) leave_out(place, name, kNotEnforced);
        } else if (name == "propertyNames") {
            property_names(value, place);
        } else if (name == "unevaluatedProperties" || name == "unevaluatedItems") {
            unevaluated(name, value, given, place, depth, made);
        } else if (name == "extends" || name == "disallow" || name == "divisibleBy") {
            leave_out(place, name, "is a keyword of draft 3, which is not supported");
        }
        // The others belong to one of these, or are read elsewhere.
    }

    void property_names(const json::value& value, const std::string& place) {
        // Every name is a string.
        const json::object* const object = value.if_object();
        const bool any_string = object && std::ranges::all_of(*object, [](const auto& member) {
                                    return !find_schema_keyword(std::string_view(member.key())) ||
                                           (member.key() == "type" && member.value() == "string");
                                });
        if (!any_string && !accepts_everything(value)) leave_out(place, "propertyNames", kNotEnforced);
    }

    // Where no other keyword evaluates more, these are additionalProperties and items.
    void unevaluated(std::string_view name, const json::value& value, const json::object& given,
                     const std::string& place, size_t depth, Made& made) {
        if (accepts_everything(value)) return;
        const bool properties = name == "unevaluatedProperties";
        if (is_composed(given) || (!properties && given.contains("contains")))
            return leave_out(place, name, kNotEnforced);
        const json::value* const list = given.if_contains("items");
        const bool evaluated = properties ? given.contains("additionalProperties")
                                          : (list && !list->is_array()) || given.contains("additionalItems");
        if (!evaluated)
            made.schema[properties ? "additionalProperties" : "items"] =
                read(value, below(place, name), depth + 1, {options_.closed});
    }

    void text_keywords(const json::object& given, const std::string& place, Made& made) {
        const std::vector<std::string_view> types = named_types(given);
        const bool texts = types.empty() || std::ranges::find(types, "string") != types.end();
        const json::value* const named = given.if_contains("format");
        const json::value* const pattern = given.if_contains("pattern");
        if (named && !named->is_string()) leave_out(place, "format", "expected a string");
        if (pattern && !pattern->is_string()) {
            leave_out(place, "pattern", "expected a string");
            return;
        }
        const std::string_view name = named && named->is_string() ? std::string_view(named->get_string()) : "";
        const TextFormat* const format = texts ? find_text_format(name) : nullptr;
        if (texts && is_unenforced_standard_format(name)) note(place, "format");
        bool only_format = false;
        if (pattern) {
            try {
                made.put("pattern", json::value(translate_pattern(std::string_view(pattern->get_string()))));
            } catch (const Error& error) {
                // Generators write a pattern that says what the format does.
                only_format = format != nullptr;
                if (only_format)
                    note(place, "pattern");
                else
                    leave_out(place, "pattern", error.what());
            }
        }
        if (!format) return;
        const std::string_view own = only_format && !format->plain.empty() ? format->plain : format->pattern;
        if (own.empty())
            made.put("format", json::value(json::string_view(format->engine.data(), format->engine.size())));
        else
            made.put("pattern", json::value(json::string_view(own.data(), own.size())));
    }

    void close(const json::object& given, const Variant& variant, json::object& made) const {
        const json::object* const properties = object_at(given, "properties");
        if (!variant.closed || !properties || is_composed(given)) return;
        if (!made.contains("type") && !made.contains("enum") && !made.contains("const")) made["type"] = "object";
        if (has_any(given, {"additionalProperties", "patternProperties", "unevaluatedProperties"})) return;
        const json::value* const needed = made.if_contains("required");
        const bool declared = !needed || std::ranges::all_of(needed->get_array(), [&](const json::value& one) {
            return properties->contains(one.get_string());
        });
        if (declared) made["additionalProperties"] = false;
    }

    // Definitions that a schema has at its own place, not within its properties or items.
    static void add_direct(const json::value& schema, std::vector<std::string>& names) {
        const json::object* const object = schema.if_object();
        if (!object) return;
        if (const json::value* const target = object->if_contains("$ref")) {
            constexpr std::string_view kBegin = "#/$defs/";
            const std::string_view text = target->get_string();
            names.emplace_back(text.starts_with(kBegin) ? text.substr(kBegin.size()) : std::string_view());
        }
        for (const std::string_view several : {"anyOf", "allOf"}) {
            const json::value* const list = object->if_contains(several);
            for (size_t i = 0; list && i < list->get_array().size(); ++i) add_direct(list->get_array()[i], names);
        }
    }

    // Throws for a definition that is only itself: no value can be read by it.
    void check_loops(const json::value& root) const {
        std::map<std::string, std::vector<std::string>> needed_by;
        std::map<std::string, size_t> needs;
        std::vector<std::string> done;
        const auto add = [&](const std::string& name, const json::value& schema) {
            std::vector<std::string> names;
            add_direct(schema, names);
            needs[name] = names.size();
            for (const std::string& other : names) needed_by[other].push_back(name);
            if (names.empty()) done.push_back(name);
        };
        add("", root);
        for (const auto& [key, schema] : definitions_) add(std::string(key), schema);
        size_t count = 0;
        while (!done.empty()) {
            const std::string name = std::move(done.back());
            done.pop_back();
            ++count;
            for (const std::string& other : needed_by[name])
                if (--needs[other] == 0) done.push_back(other);
        }
        if (count == needs.size()) return;
        for (const auto& [name, left] : needs)
            if (left > 0) refuse_keyword(name.empty() ? "" : "/$defs/" + name, "$ref", "refers to itself");
    }

    const json::value& document_;
    const SchemaOptions options_;
    const SchemaReferences references_;
    SchemaExclusion exclusion_;
    size_t count_ = 0, place_bytes_ = 0;
    std::vector<std::string> unenforced_;
    std::set<std::string> noted_;                                   // the same
    std::map<std::pair<std::string, Variant>, std::string> names_;  // of definitions
    std::set<std::string> taken_;
    std::map<std::string, size_t> last_numbers_;  // of definitions whose names would be the same
    std::vector<Left> left_;                      // definitions that are referred to
    json::object definitions_;
};

}  // namespace

ReadSchema read_schema(const json::value& schema, const SchemaOptions& options) {
    if (const size_t bytes = json::serialize(schema).size(); bytes > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has {} bytes; at most {} are accepted", bytes, kMostSchemaBytes);
    return SchemaReader(schema, options).run();
}

std::string schema_rule(const json::value& read) {
    json::value made = read;
    if (made.is_bool()) {
        if (!made.get_bool()) fail(TSR_INVALID_ARGUMENT, "the schema is false, which no answer is");
        made = json::object();
    }
    made.get_object()["x-guidance"] = json::parse(json::string_view(kGuidance.data(), kGuidance.size()));
    std::string text = json::serialize(made);
    if (text.size() > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has {} bytes; at most {} are accepted", text.size(), kMostSchemaBytes);
    return text;
}

json::value parse_schema(std::string_view text) {
    if (text.size() > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has {} bytes; at most {} are accepted", text.size(), kMostSchemaBytes);
    json::parse_options options;
    options.max_depth = 4 * kMostSchemaDepth;
    json::error_code error;
    json::value value = json::parse(json::string_view(text.data(), text.size()), error, {}, options);
    if (error) fail(TSR_INVALID_ARGUMENT, "the schema is not JSON: {}", error.message());
    return value;
}

void refuse_keyword(std::string_view place, std::string_view keyword, std::string_view why) {
    fail(TSR_INVALID_ARGUMENT, "the schema's {}{}{}: {}", place.empty() ? "" : place.substr(1),
         place.empty() || keyword.empty() ? "" : "/", printable(keyword, 60), why);
}

json::value any_object() {
    return json::object{{"type", "object"}};
}

}  // namespace tessera::structure
