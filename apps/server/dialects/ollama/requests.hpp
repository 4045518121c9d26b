// Requests to /api/chat and /api/generate.
#pragma once

#include "apps/server/conversation.hpp"

#include <string_view>

namespace tessera::server::ollama {

struct Asked : ChatRequest {
    // Not empty: nothing is to be generated. Clients ask so that the model is loaded, "load", or gives its memory back,
    // "unload".
    std::string_view loading = {};
};

// Callbacks, client and space of the session's request are the caller's. Both throw ApiError, and Error for what the
// template or the sampler refuses.
Asked read_chat(std::string_view body, const ModelText& model);
Asked read_generate(std::string_view body, const ModelText& model);

}  // namespace tessera::server::ollama
