#include "apps/structure/json_schema.hpp"

#include "apps/structure/ecma_pattern.hpp"
#include "core/base/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr size_t kMostSchemaBytes = 1 << 20, kMostSchemaDepth = 64, kMostSchemas = 20'000;
constexpr size_t kMostPlaceBytes = 32 << 20;  // of the places of all schemas within one
constexpr double kMostRepetitions = 100'000;

// What holds schemas, and how.
enum class Holds : uint8_t { kNothing, kSchema, kList, kMembers, kPatterns, kSchemaOrList };

struct Keyword {
    std::string_view name;
    Holds holds = Holds::kNothing;
};

constexpr Keyword kEnforced[] = {
    {"type"},
    {"enum"},
    {"const"},
    {"properties", Holds::kMembers},
    {"patternProperties", Holds::kPatterns},
    {"additionalProperties", Holds::kSchema},
    {"required"},
    {"minProperties"},
    {"maxProperties"},
    {"items", Holds::kSchemaOrList},
    {"additionalItems", Holds::kSchema},
    {"prefixItems", Holds::kList},
    {"minItems"},
    {"maxItems"},
    {"minLength"},
    {"maxLength"},
    {"pattern"},
    {"format"},
    {"minimum"},
    {"maximum"},
    {"exclusiveMinimum"},
    {"exclusiveMaximum"},
    {"multipleOf"},
    {"anyOf", Holds::kList},
    {"oneOf", Holds::kList},
    {"allOf", Holds::kList},
    {"$ref"},
    {"$defs", Holds::kMembers},
    {"definitions", Holds::kMembers},
    {"$schema"},
};

// What describes and decides nothing.
constexpr std::string_view kAnnotations[] = {
    "title",    "description", "default",     "examples",         "example",         "deprecated",    "$comment",
    "readOnly", "writeOnly",   "$vocabulary", "contentMediaType", "contentEncoding", "contentSchema",
};

constexpr std::string_view kFormats[] = {"date-time", "time", "date", "duration", "email",
                                         "hostname",  "ipv4", "ipv6", "uuid",     "uri"};

// Those of which llguidance's own take days that no year has, and leap seconds at any time: as RFC 3339 has them, from
// the year 1000 on, without leap seconds.
#define TSR_DATE                                                                                                     \
    "(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"       \
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-" \
    "29)"
#define TSR_TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
constexpr std::pair<std::string_view, std::string_view> kFormatPatterns[] = {
    {"date", "^(?:" TSR_DATE ")$"}, {"time", "^" TSR_TIME "$"}, {"date-time", "^(?:" TSR_DATE ")T" TSR_TIME "$"}};
#undef TSR_DATE
#undef TSR_TIME

// Of llguidance: few blanks, as a model might never end them; each name has one spelling, so that none is taken for
// another one's.
constexpr std::string_view kGuidance =
    R"json({"whitespace_pattern":"( |\n{1,2}[ \t]{0,40})","json_allowed_escapes":"nrbtf\\\""})json";

class Checker {
  public:
    // Takes out what says nothing, and translates patterns.
    json::value run(const json::value& schema) {
        json::value made = checked(schema, "", 0);
        for (const auto& [place, target] : references_) {
            if (!places_.contains(target))
                refuse_keyword(place, "$ref", fmt::format("refers to '#{}', which is no schema of this one", target));
        }
        return made;
    }

  private:
    static std::string escaped(std::string_view name) {
        std::string out;
        for (const char c : name) {
            if (c == '~')
                out += "~0";
            else if (c == '/')
                out += "~1";
            else
                out += c;
        }
        return out;
    }

    json::value checked(const json::value& schema, const std::string& place, size_t depth) {
        if (depth > kMostSchemaDepth)
            fail(TSR_INVALID_ARGUMENT, "the schema is nested deeper than {}", kMostSchemaDepth);
        if (++count_ > kMostSchemas)
            fail(TSR_INVALID_ARGUMENT, "the schema has more than {} schemas within it", kMostSchemas);
        // Each has the names of all that it is in.
        place_bytes_ += place.size();
        if (place_bytes_ > kMostPlaceBytes)
            fail(TSR_INVALID_ARGUMENT, "the schema has too many schemas below long names; make the names shorter");
        places_.insert(place);
        if (schema.is_bool()) return schema;
        if (!schema.is_object()) {
            fail(TSR_INVALID_ARGUMENT, "the schema{}{}: expected an object, true or false", place.empty() ? "" : "'s ",
                 place.empty() ? "" : place.substr(1));
        }
        json::object made;
        for (const auto& [key, value] : schema.get_object()) {
            const std::string_view name(key.data(), key.size());
            const auto found = std::ranges::find(kEnforced, name, &Keyword::name);
            if (found == std::end(kEnforced)) {
                check_other(name, value, place);
                continue;
            }
            check_value(schema.get_object(), name, value, place);
            if (name == "format") {
                const auto pattern = std::ranges::find(kFormatPatterns, std::string_view(value.get_string()),
                                                       &std::pair<std::string_view, std::string_view>::first);
                if (pattern == std::end(kFormatPatterns)) {
                    made[key] = value;
                } else if (schema.get_object().contains("pattern")) {
                    refuse_keyword(place, name, "answers are not held to it beside a pattern");
                } else {
                    made["pattern"] = json::string_view(pattern->second.data(), pattern->second.size());
                }
            } else if (name == "pattern") {
                made[key] = translated(value.get_string(), place, name);
            } else {
                made[key] = held(*found, value, place + "/" + escaped(name), depth);
            }
        }
        return made;
    }

    static void check_other(std::string_view name, const json::value& value, const std::string& place) {
        if (std::ranges::find(kAnnotations, name) != std::end(kAnnotations)) return;
        const bool off = value.is_bool() && !value.get_bool();
        if (off && (name == "uniqueItems" || name == "nullable" || name == "$recursiveAnchor")) return;
        if ((name == "$id" || name == "id") && place.empty()) return;
        if (name == "x-guidance") refuse_keyword(place, name, "is not offered");
        if (name.starts_with("x-")) return;
        refuse_keyword(place, name, "is a keyword that answers are not held to");
    }

    static std::string translated(std::string_view pattern, const std::string& place, std::string_view name) {
        try {
            return translate_pattern(pattern);
        } catch (const Error& error) {
            refuse_keyword(place, name, error.what());
        }
    }

    json::value held(const Keyword& keyword, const json::value& value, const std::string& place, size_t depth) {
        switch (keyword.holds) {
            case Holds::kSchema:
                return checked(value, place, depth + 1);
            case Holds::kSchemaOrList:
                if (!value.is_array()) return checked(value, place, depth + 1);
                [[fallthrough]];
            case Holds::kList: {
                if (!value.is_array()) refuse_keyword(place, "", "expected a list");
                json::array made;
                for (size_t i = 0; i < value.get_array().size(); ++i)
                    made.push_back(checked(value.get_array()[i], fmt::format("{}/{}", place, i), depth + 1));
                return made;
            }
            case Holds::kMembers:
            case Holds::kPatterns: {
                if (!value.is_object()) refuse_keyword(place, "", "expected an object");
                json::object made;
                for (const auto& [key, member] : value.get_object()) {
                    json::value inner = checked(member, place + "/" + escaped(std::string_view(key)), depth + 1);
                    if (keyword.holds == Holds::kMembers) {
                        made[key] = std::move(inner);
                    } else {
                        made[translated(std::string_view(key), place, std::string_view(key))] = std::move(inner);
                    }
                }
                return made;
            }
            case Holds::kNothing:
                break;
        }
        return value;
    }

    void check_value(const json::object& schema, std::string_view name, const json::value& value,
                     const std::string& place) {
        if (name == "pattern" && !value.is_string()) refuse_keyword(place, name, "expected a text");
        if (name == "format") {
            if (!value.is_string()) refuse_keyword(place, name, "expected a text");
            const std::string_view format = value.get_string();
            if (std::ranges::find(kFormats, format) == std::end(kFormats)) {
                refuse_keyword(place, name,
                               fmt::format("answers are not held to '{}'; to these they are: {}", printable(format, 40),
                                           fmt::join(kFormats, ", ")));
            }
        }
        if (name == "$ref") check_reference(value, place);
        if (name == "const" || name == "enum" || name == "properties" || name == "required")
            check_characters(value, place, name);
        for (const std::string_view count :
             {"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"}) {
            if (name != count) continue;
            const double number = value.is_number() ? value.to_number<double>() : -1;
            if (number < 0 || number != std::floor(number))
                refuse_keyword(place, name, "expected a whole number, not negative");
            if (number > kMostRepetitions)
                refuse_keyword(place, name, fmt::format("is larger than {}", kMostRepetitions));
        }
        // Names that are not declared may come twice, and would count twice.
        if (name == "minProperties") {
            const json::value* const required = schema.if_contains("required");
            const auto declared = required && required->is_array() ? required->get_array().size() : 0;
            if (value.to_number<double>() > static_cast<double>(declared + 1))
                refuse_keyword(place, name, "answers are not held to more than one beyond those that are required");
        }
    }

    // Strings have no escapes by number, so such characters cannot be written.
    static void check_characters(const json::value& value, const std::string& place, std::string_view name) {
        const auto check = [&](std::string_view text) {
            constexpr std::string_view kNamed = "\n\r\t\b\f";
            for (const char c : text) {
                if ((static_cast<unsigned char>(c) < 0x20 && kNamed.find(c) == kNamed.npos) || c == 0x7f)
                    refuse_keyword(place, name, "has a control character that answers cannot have");
            }
        };
        if (value.is_string()) {
            check(std::string_view(value.get_string()));
        } else if (value.is_array()) {
            for (const json::value& one : value.get_array()) check_characters(one, place, name);
        } else if (value.is_object()) {
            for (const auto& [key, member] : value.get_object()) {
                check(std::string_view(key));
                if (name != "properties") check_characters(member, place, name);
            }
        }
    }

    void check_reference(const json::value& value, const std::string& place) {
        if (!value.is_string()) refuse_keyword(place, "$ref", "expected a text");
        const std::string_view text = value.get_string();
        if (text != "#" && !text.starts_with("#/"))
            refuse_keyword(
                place, "$ref",
                fmt::format("'{}' is outside the schema, or a name: '#/...' is followed alone", printable(text, 60)));
        std::string target;
        for (size_t i = 1; i < text.size(); ++i) {
            if (text[i] != '%') {
                target += text[i];
                continue;
            }
            unsigned code = 0;
            const auto digits = text.substr(i + 1, 2);
            if (digits.size() != 2 ||
                std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr != digits.data() + 2)
                refuse_keyword(place, "$ref", "is not a valid place");
            target += static_cast<char>(code);
            i += 2;
        }
        references_.emplace_back(place, std::move(target));
    }

    size_t count_ = 0, place_bytes_ = 0;
    std::set<std::string> places_;
    std::vector<std::pair<std::string, std::string>> references_;  // where, to what
};

json::value guided(const json::value& schema) {
    json::value made = Checker().run(schema);
    // llguidance says so of what is always false.
    if (made.is_bool()) {
        if (!made.get_bool()) fail(TSR_INVALID_ARGUMENT, "the schema is false, which no answer is");
        made = json::object();
    }
    made.get_object()["x-guidance"] = json::parse(json::string_view(kGuidance.data(), kGuidance.size()));
    return made;
}

}  // namespace

json::value checked_schema(const json::value& schema) {
    if (json::serialize(schema).size() > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema is larger than {} bytes", kMostSchemaBytes);
    return Checker().run(schema);
}

std::string schema_rule(const json::value& schema) {
    std::string text = json::serialize(guided(schema));
    if (text.size() > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has {} bytes; at most {} are accepted", text.size(), kMostSchemaBytes);
    return text;
}

GrammarText schema_grammar(const json::value& schema) {
    return {GrammarKind::kJsonSchema, schema_rule(schema)};
}

GrammarText schema_grammar(std::string_view schema) {
    if (schema.size() > kMostSchemaBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has {} bytes; at most {} are accepted", schema.size(), kMostSchemaBytes);
    json::parse_options options;
    options.max_depth = 4 * kMostSchemaDepth;
    json::error_code error;
    const json::value value = json::parse(json::string_view(schema.data(), schema.size()), error, {}, options);
    if (error) fail(TSR_INVALID_ARGUMENT, "the schema is not JSON: {}", error.message());
    return schema_grammar(value);
}

void refuse_keyword(std::string_view place, std::string_view keyword, std::string_view why) {
    fail(TSR_INVALID_ARGUMENT, "the schema's {}{}{}: {}", place.empty() ? "" : place.substr(1),
         place.empty() || keyword.empty() ? "" : "/", printable(keyword, 60), why);
}

json::value any_object() {
    return json::object{{"type", "object"}};
}

}  // namespace tessera::structure
