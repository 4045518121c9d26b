// Requests to /v1/responses.
#pragma once

#include "apps/server/conversation.hpp"

#include <string_view>

namespace tessera::server::responses {

// Callbacks, client and space of the session's request are the caller's. Throws ApiError, and Error for what the
// template or the sampler refuses.
ChatRequest read_response(std::string_view body, const ModelText& model);

}  // namespace tessera::server::responses
