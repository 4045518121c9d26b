// Requests to /api/chat and /api/generate.
#pragma once

#include "apps/server/conversation.hpp"

#include <string_view>

namespace tessera::server::ollama {

// Callbacks, client and space of the session's request are the caller's. Both throw ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_chat(std::string_view body, const ModelText& model);
ChatRequest read_generate(std::string_view body, const ModelText& model);

}  // namespace tessera::server::ollama
