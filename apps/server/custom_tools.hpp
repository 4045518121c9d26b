// Definitions of custom tools, which a client calls with a string. The model sees each as a function with one argument.
#pragma once

#include "apps/server/json_fields.hpp"
#include "core/text/chat_template.hpp"

#include <map>
#include <string>
#include <string_view>

namespace tessera::server {

// Grammar of a custom tool's input. Without a syntax any string is accepted.
struct InputGrammar {
    enum class Syntax : uint8_t { kNone, kLark, kRegex };
    Syntax syntax = Syntax::kNone;
    std::string_view definition = {};
};

// Lark grammars of custom tools by the tool's name for the model; empty: the tool has none, or a regular expression.
using CustomTools = std::map<std::string, std::string>;

// Reads the members `syntax` and `definition`, both required. The result points into the request. Throws ApiError(400).
InputGrammar read_input_grammar(const Fields& fields);

// Returns the function that stands for a custom tool, and adds the tool to `custom`. The grammar is a part of the
// function's description; a regular expression is a part of its schema, too. Any thread.
text::ChatTool custom_tool(std::string_view name, std::string_view description, const InputGrammar& grammar,
                           CustomTools& custom);

}  // namespace tessera::server
