// A file's own chat template, which decides what the known form may write.
#pragma once

#include "core/text/chat_template.hpp"
#include "core/text/jinja/program.hpp"

#include <span>
#include <string>
#include <string_view>

namespace tessera::text {

// What the program makes of this conversation, in transformers' terms: roles, contents, reasoning_content, tool_calls,
// tool_call_id and name of messages, tools, add_generation_prompt, bos_token, eos_token, and thinking and
// enable_thinking if they were asked for. Arguments of calls are texts if `arguments_as_given`, else values. Throws
// Error as jinja::Program::run() does, and TSR_INVALID_ARGUMENT for tools that are not well formed.
std::string run_chat_program(const jinja::Program& program, std::span<const ChatMessage> messages,
                             const ChatOptions& options, bool arguments_as_given);

// The tool's object as given, else made of its parts. Throws Error(TSR_INVALID_ARGUMENT) with its index.
PythonJson tool_object(const ChatTool& tool, size_t index);

}  // namespace tessera::text
