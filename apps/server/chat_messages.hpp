// Conversations in the form of the OpenAI API, which others take over.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"

#include <vector>

namespace tessera::server {

// All throw ApiError.

// The field tools: {"type": "function", "function": {"name": ..., "description": ..., "parameters": ...}}.
std::vector<text::ChatTool> read_function_tools(const Fields& fields);

Conversation read_conversation(const Fields& fields, const ModelText& model);

}  // namespace tessera::server
