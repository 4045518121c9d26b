// JSON Schemas (draft 2020-12; also what drafts 4 to 2019-09 have in common with it) that answers can be held to.
#pragma once

#include "apps/structure/helper.hpp"

#include <boost/json/value.hpp>

#include <string_view>

namespace tessera::structure {

// Answers are JSON that the schema accepts, or not all of that: members stand in the order of "properties", blanks are
// few. Nothing is left unchecked: throws Error(TSR_INVALID_ARGUMENT) that names the keyword and its place where one is
// not known, or cannot be held to, or the schema is too large or too deep. llguidance refuses more when it compiles it.
GrammarText schema_grammar(const boost::json::value& schema);

// Of its text. Throws the same, and for what is not JSON.
GrammarText schema_grammar(std::string_view schema);

// The schema without what decides nothing, and with its patterns as translate_pattern() makes them. Throws as above.
boost::json::value checked_schema(const boost::json::value& schema);

// The schema as a rule of a Lark grammar, "%json {...}".
std::string schema_rule(const boost::json::value& schema);

// Throws Error(TSR_INVALID_ARGUMENT) for a keyword of the schema at `place`, a JSON pointer.
[[noreturn]] void refuse_keyword(std::string_view place, std::string_view keyword, std::string_view why);

// Any JSON object.
boost::json::value any_object();

}  // namespace tessera::structure
