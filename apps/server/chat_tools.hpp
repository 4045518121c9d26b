// Tools in the form of the OpenAI API, which others take over: their definitions, the choice among them, and calls.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/json_fields.hpp"
#include "core/text/chat_template.hpp"

#include <vector>

namespace tessera::server {

// All throw ApiError(400), and return nothing where the field is missing.

// Reads the field tools, functions only: {"type": "function", "function": {"name": ..., "parameters": ...}}.
std::vector<text::ChatTool> read_function_tools(const Fields& fields);

// Reads the field tools into `conversation`, also {"type": "custom", "custom": {"name": ..., "format": ...}}.
void read_chat_tools(const Fields& fields, Conversation& conversation);

// Reads the field tool_choice: "auto", "none", "required", a tool, or {"type": "allowed_tools", "allowed_tools":
// {"mode": "required", "tools": [...]}}.
ToolChoice read_tool_choice(const Fields& fields);

// Reads the field tool_calls of a message, of functions and of custom tools.
std::vector<text::ToolCall> read_tool_calls(const Fields& message);

}  // namespace tessera::server
