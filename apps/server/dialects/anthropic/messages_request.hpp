// Requests to /v1/messages.
#pragma once

#include "apps/server/conversation.hpp"

#include <string_view>

namespace tessera::server::anthropic {

// Callbacks, client and space of the session's request are the caller's. Both throw ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_messages(std::string_view body, const ModelText& model);
// Tokens of the prompt that read_messages() would make.
uint64_t count_tokens(std::string_view body, const ModelText& model);

}  // namespace tessera::server::anthropic
