// Requests to /embedding, as llama-server has it.
#pragma once

#include "apps/server/embeddings_responder.hpp"

#include <string_view>

namespace tessera::server {

// Callbacks, client and space of the session's requests are the caller's. Throws ApiError.
EmbeddingsRequest read_embedding(std::string_view body, const ModelText& model);

}  // namespace tessera::server
