// Arguments of calls that are not JSON, as rules of a Lark grammar.
#pragma once

#include "apps/structure/call_format.hpp"
#include "apps/structure/tool_grammar.hpp"

#include <boost/json/value.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

struct CallArguments {
    std::string expression, rules;
};

// `parameters`: as read_schema() returns them. `prefix`: what names of rules begin with. `unenforced`: gets the places
// of keywords and parameters that are left out, if the tool allows that. Throws Error(TSR_INVALID_ARGUMENT) for a
// schema that arguments cannot be held to.
CallArguments call_arguments(const CallFormat& format, const CallableTool& tool, const boost::json::value& parameters,
                             const std::string& prefix, const text::ReplySyntax& reply,
                             const text::Tokenizer& tokenizer, std::vector<std::string>& unenforced);

// As lark_markers(), with what kOptionalBreak and the like stand for.
std::string format_text(std::string_view text, const text::Tokenizer& tokenizer);

}  // namespace tessera::structure
