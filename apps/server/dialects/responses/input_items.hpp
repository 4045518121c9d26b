// The input of a request to /v1/responses as messages.
#pragma once

#include "apps/server/json_fields.hpp"
#include "core/text/chat_template.hpp"

#include <string_view>
#include <vector>

namespace tessera::server::responses {

// What an item's encrypted_content begins with if this server wrote it: reasoning follows, which is not encrypted.
inline constexpr std::string_view kReturnedReasoning = "tessera-reasoning:";

// The field input: a text, or a list of items. Those of the assistant's that follow each other are one message, and so
// are the first ones of system and developer with `instructions`. Throws ApiError(400).
std::vector<text::ChatMessage> read_input(const Fields& fields, std::string_view instructions);

}  // namespace tessera::server::responses
