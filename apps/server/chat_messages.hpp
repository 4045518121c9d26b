// Conversations in the form of the OpenAI API, which others take over.
#pragma once

#include "apps/server/conversation.hpp"
#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"

namespace tessera::server {

// Throws ApiError.
Conversation read_conversation(const Fields& fields, const ModelText& model);

}  // namespace tessera::server
