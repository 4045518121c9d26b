// Requests to /api/embed and to /api/embeddings, which is older.
#pragma once

#include "apps/server/embeddings_responder.hpp"

#include <string_view>

namespace tessera::server::ollama {

// Callbacks, client and space of the session's requests are the caller's. Both throw ApiError.
EmbeddingsRequest read_embed(std::string_view body, const ModelText& model);
EmbeddingsRequest read_embeddings(std::string_view body, const ModelText& model);

}  // namespace tessera::server::ollama
