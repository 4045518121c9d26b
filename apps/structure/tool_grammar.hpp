// Calls of tools as each model writes them, as bodies of answers.
#pragma once

#include "apps/structure/answer_grammar.hpp"

#include <span>
#include <string>

namespace tessera::structure {

struct CallableTool {
    std::string name;
    std::string parameters;  // a JSON schema
};

// One call of one of the tools, or `several`: at least one. Throws Error: TSR_UNSUPPORTED for a syntax whose arguments
// are not JSON, TSR_INVALID_ARGUMENT with the tool's name for a schema that arguments cannot be held to.
Body calls_body(text::ToolSyntax syntax, std::span<const CallableTool> tools, bool several,
                const text::Tokenizer& tokenizer);

}  // namespace tessera::structure
