#include "apps/structure/schema_keywords.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr SchemaKeyword kKeywords[] = {
    {"type"},
    {"enum"},
    {"const"},
    {"properties", Subschemas::kMembers},
    {"patternProperties", Subschemas::kMembers},
    {"additionalProperties", Subschemas::kOne},
    {"required"},
    {"minProperties"},
    {"maxProperties"},
    {"items", Subschemas::kOneOrList},
    {"additionalItems", Subschemas::kOne},
    {"prefixItems", Subschemas::kList},
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
    {"anyOf", Subschemas::kList},
    {"oneOf", Subschemas::kList},
    {"allOf", Subschemas::kList},
    {"$ref"},
    {"$dynamicRef"},
    {"$recursiveRef"},
    {"$defs", Subschemas::kMembers},
    {"definitions", Subschemas::kMembers},
    {"not", Subschemas::kOne},
    {"if", Subschemas::kOne},
    {"then", Subschemas::kOne},
    {"else", Subschemas::kOne},
    {"dependentRequired"},
    {"dependentSchemas", Subschemas::kMembers},
    {"dependencies"},
    {"contains", Subschemas::kOne},
    {"minContains"},
    {"maxContains"},
    {"propertyNames", Subschemas::kOne},
    {"uniqueItems"},
    {"unevaluatedItems", Subschemas::kOne},
    {"unevaluatedProperties", Subschemas::kOne},
    // Draft 3.
    {"extends"},
    {"disallow"},
    {"divisibleBy"},
};

constexpr std::string_view kTypes[] = {"string", "integer", "number", "boolean", "null", "array", "object"};

// "minLength" and "min_length" are alike.
std::string plain_letters(std::string_view word) {
    std::string made;
    for (const char c : word) {
        if (c == '_' || c == '-') continue;
        made += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return made;
}

}  // namespace

const SchemaKeyword* find_schema_keyword(std::string_view name) {
    const auto* const found = std::ranges::find(kKeywords, name, &SchemaKeyword::name);
    return found == std::end(kKeywords) ? nullptr : found;
}

const SchemaKeyword* find_misspelt_keyword(std::string_view word) {
    constexpr size_t kLongest = 64;
    if (word.size() > kLongest || find_schema_keyword(word)) return nullptr;
    const std::string letters = plain_letters(word);
    const auto* const found = std::ranges::find_if(
        kKeywords, [&](const SchemaKeyword& keyword) { return plain_letters(keyword.name) == letters; });
    return found == std::end(kKeywords) ? nullptr : found;
}

std::span<const std::string_view> schema_types() {
    return kTypes;
}

std::vector<std::string_view> named_types(const json::object& schema) {
    std::vector<std::string_view> types;
    const auto add = [&](const json::value& value) {
        if (value.is_string()) types.emplace_back(value.get_string());
    };
    const json::value* const type = schema.if_contains("type");
    if (type && type->is_array()) {
        for (const json::value& one : type->get_array()) add(one);
    } else if (type) {
        add(*type);
    }
    return types;
}

bool is_of_type(const json::value& value, std::string_view type) {
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    if (!value.is_number()) return false;
    return type == "number" ||
           (type == "integer" && (!value.is_double() || std::trunc(value.get_double()) == value.get_double()));
}

bool equal_values(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) {
        if (!a.is_double() && !b.is_double()) return a == b;
        return a.to_number<double>() == b.to_number<double>();
    }
    if (a.is_array() && b.is_array())
        return std::ranges::equal(a.get_array(), b.get_array(), [](auto& x, auto& y) { return equal_values(x, y); });
    if (a.is_object() && b.is_object()) {
        if (a.get_object().size() != b.get_object().size()) return false;
        return std::ranges::all_of(a.get_object(), [&](const auto& member) {
            const json::value* const other = b.get_object().if_contains(member.key());
            return other && equal_values(member.value(), *other);
        });
    }
    return a == b;
}

bool accepts_everything(const json::value& schema) {
    if (schema.is_bool()) return schema.get_bool();
    return schema.is_object() && std::ranges::none_of(schema.get_object(), [](const auto& member) {
               return find_schema_keyword(std::string_view(member.key())) != nullptr;
           });
}

bool accepts_nothing(const json::value& schema) {
    if (schema.is_bool()) return !schema.get_bool();
    if (!schema.is_object()) return false;
    const json::value* const negated = schema.get_object().if_contains("not");
    return negated && accepts_everything(*negated);
}

}  // namespace tessera::structure
