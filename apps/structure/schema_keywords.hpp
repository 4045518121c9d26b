// The keywords of JSON Schema that say which values a schema accepts. All other words are annotations.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::structure {

// Where the schemas within a keyword's value are.
enum class Subschemas : uint8_t { kNone, kOne, kList, kMembers, kOneOrList };

struct SchemaKeyword {
    std::string_view name;
    Subschemas subschemas = Subschemas::kNone;
};

// Null: the name is an annotation.
const SchemaKeyword* find_schema_keyword(std::string_view name);

// The keyword that a word like "min_length", "oneof" or "MaxItems" stands for; null: none, or the word is one itself.
const SchemaKeyword* find_misspelt_keyword(std::string_view word);

// Names of JSON types: "string", "integer", ...
std::span<const std::string_view> schema_types();

// The types that a schema names; empty: it names none, so it accepts all.
std::vector<std::string_view> named_types(const boost::json::object& schema);

// Whether a value is of a type; 1.0 is an integer.
bool is_of_type(const boost::json::value& value, std::string_view type);

// Whether two values are equal, as JSON Schema compares them: 1 equals 1.0.
bool equal_values(const boost::json::value& a, const boost::json::value& b);

// Whether a schema accepts everything: true, or an object with annotations only.
bool accepts_everything(const boost::json::value& schema);
// Whether a schema accepts nothing: false, {"not": {}} or {"not": true}.
bool accepts_nothing(const boost::json::value& schema);

}  // namespace tessera::structure
