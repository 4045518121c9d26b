// A conversation as the variables of a program, and what it makes of them.
#pragma once

#include "core/text/chat_history.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/jinja/program.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

// How a program wants conversations, which differs from one to the next.
struct ChatShape {
    bool arguments_as_text = false;  // of calls; else as values
    bool null_content = false;       // a message of calls alone has no content rather than an empty one
    bool content_as_parts = false;   // contents are lists of {"type": "text", "text": ...}
    std::string reasoning_key = "reasoning_content";
    bool functions_as_text = false;  // tools are `functions`, JSON text, beside `datetime`
    bool writes_developer = false;   // it knows the role developer; else such a message is a system message
    bool empty_tools = false;        // without tools, an empty list rather than none
    // Not empty: it writes no calls, and this one writes an answer with them as a content (missing_calls()).
    std::string_view calls_program = {};
    std::vector<Rewriting> rewritings = {};  // of all conversations: it would write others wrongly, or refuse them
    bool may_change_lists = false;           // it calls append() and pop(), as llama.cpp lets it
    // What marks reasoning in contents, which stays what it is there.
    std::string reasoning_begin = "<think>", reasoning_end = "</think>";
};

// An answer: the marks of reasoning are the template's own, the rest is content.
jinja::Text answer_text(std::string_view text, const ChatShape& shape);

// What the program makes of this conversation, in transformers' terms: roles, contents, reasoning, tool_calls,
// tool_call_id and name of messages, tools, add_generation_prompt, bos_token, eos_token, and thinking and
// enable_thinking if they were asked for (FireFunction: functions and datetime). `description`: of tools, added to the
// system message; empty: none. Throws Error as jinja::Program::run() does, and TSR_INVALID_ARGUMENT for tools that are
// not well formed. `budget_parts`: the program may use this part of its limits, for one of several attempts.
jinja::Marked run_chat_program(const jinja::Program& program, const ChatShape& shape,
                               std::span<const ChatMessage> messages, const ChatOptions& options,
                               std::string_view description = {}, uint64_t budget_parts = 1);

}  // namespace tessera::text
