// The input of a request to /v1/responses as messages.
#pragma once

#include "apps/server/json_fields.hpp"
#include "core/text/chat_template.hpp"

#include <string_view>
#include <vector>

namespace tessera::server::responses {

// The field input: a text, or a list of items. Those of the assistant's that follow each other are one message, and so
// are the first ones of system and developer with `instructions`. Throws ApiError(400).
std::vector<text::ChatMessage> read_input(const Fields& fields, std::string_view instructions);

}  // namespace tessera::server::responses
