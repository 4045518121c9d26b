// JSON Schemas (draft 2020-12, what drafts 4 to 2019-09 write differently, and OpenAPI) that answers can be held to.
#pragma once

#include "apps/structure/helper.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

// How a schema is read.
struct SchemaOptions {
    // Objects with "properties" have no others, unless the schema says so by "additionalProperties" or the like.
    bool closed = false;
    // A keyword that cannot be enforced is left out, not refused.
    bool allow_unenforced = false;
};

// A schema that says the same in fewer words: without annotations, with references into its "$defs" only, patterns as
// translate_pattern() makes them, and anyOf for every oneOf.
struct ReadSchema {
    boost::json::value schema;
    // JSON pointers of keywords that were left out, without the first slash: "properties/a/uniqueItems".
    std::vector<std::string> unenforced;
};

// Reads a schema. What the result accepts the schema accepts, too, but for what `unenforced` names; not the reverse:
// members come in the order of "properties", and some values cannot be written. Throws Error(TSR_INVALID_ARGUMENT) that
// names a keyword and its place where it is invalid or cannot be enforced (unless options.allow_unenforced), and where
// the schema is too large or too deep. llguidance refuses more when it compiles the result.
ReadSchema read_schema(const boost::json::value& schema, const SchemaOptions& options = {});

// The JSON of a text. Throws Error(TSR_INVALID_ARGUMENT).
boost::json::value parse_schema(std::string_view text);

// A schema that read_schema() returned, as a rule of a Lark grammar: "%json {...}" without the first word. Throws
// Error(TSR_INVALID_ARGUMENT) for one that accepts nothing, or is too large.
std::string schema_rule(const boost::json::value& read);

// Throws Error(TSR_INVALID_ARGUMENT) for a keyword of the schema at `place`, a JSON pointer.
[[noreturn]] void refuse_keyword(std::string_view place, std::string_view keyword, std::string_view why);

// Any JSON object.
boost::json::value any_object();

}  // namespace tessera::structure
