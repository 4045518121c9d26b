// What a template wants and how its model answers, from what it writes of a few short conversations.
#pragma once

#include "core/text/chat_program.hpp"

#include <string>

namespace tessera::text {

struct ChatTraits {
    ChatShape shape;
    bool has_switch = false;         // ChatOptions::thinking changes something
    bool thinks_by_default = false;  // without it as with true
    bool has_efforts = false;        // the variable reasoning_effort changes something
    bool describes_tools = false;
    bool writes_calls = false;
    bool writes_results = false;
    bool writes_system = false;  // contents of system messages
    bool reads_calls() const { return reply.tools != ToolSyntax::kNone; }
    bool late_system = false;     // contents of all of them, also where they stand behind others
    bool writes_turns = false;    // contents of all questions and answers, answers perhaps without their thoughts
    bool reasons = false;         // answers may begin with reasoning
    bool always_reasons = false;  // also where the switch is off: its marks are no text
    ReplySyntax reply;            // the markers of reasoning, and how calls are written if it knows any
    std::string markers;          // ChatTemplate::markers()
};

// Throws Error as ChatTemplate::of_program() does, if a question alone cannot be written.
ChatTraits probe_chat(const jinja::Program& program);

// How `text`, which is what a template wrote of an answer that calls the function `name`, writes calls.
ToolSyntax tool_syntax_of(std::string_view text, std::string_view name);

}  // namespace tessera::text
