// Calls of tools as each model writes them, as bodies of answers.
#pragma once

#include "apps/structure/answer_grammar.hpp"

#include <span>
#include <string>

namespace tessera::structure {

struct CallableTool {
    std::string name;
    std::string parameters;  // a JSON schema, read as SchemaOptions::closed
    bool held = true;        // arguments keep to the schema; else they are any object
    // What the schema says that cannot be enforced is reported in Body::unenforced; else the tool is refused.
    bool allow_unenforced = false;
    // In Lark: arguments are {"input": TEXT} with a text of this grammar; empty: `parameters` says what they are.
    std::string input_grammar = {};
};

// How many calls an answer has.
struct CallCount {
    bool any = false;     // free text without calls will do, and may stand before them
    bool several = true;  // more than one
};

// Whether calls of this form begin with a mark that other text of an answer has not, and all else of the answer behind
// its reasoning is plain text: so that an answer which may be free can be held to them.
bool calls_stand_in_text(const text::ReplySyntax& reply);

// Calls of the tools, as answers of this form have them: at least one, and nothing else, but where `count` says more.
// `otherwise`: what an answer without calls is, where `count` allows that, and nothing stands before calls then; null:
// any text.
// Throws Error: TSR_UNSUPPORTED for a form without calls, TSR_INVALID_ARGUMENT with the tool's name for a schema that
// arguments cannot be held to.
Body calls_body(const text::ReplySyntax& reply, std::span<const CallableTool> tools, CallCount count,
                const text::Tokenizer& tokenizer, const Body* otherwise = nullptr);

}  // namespace tessera::structure
