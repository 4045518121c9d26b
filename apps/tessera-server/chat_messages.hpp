// Conversations in requests.
#pragma once

#include "apps/tessera-server/json_fields.hpp"
#include "apps/tessera-server/model_text.hpp"

#include <vector>

namespace tessera::server {

// The conversation, its tools and options as the model's template writes them. Throws ApiError, and what
// ChatTemplate::write throws.
text::WrittenChat write_chat(const Fields& fields, const ModelText& model);

}  // namespace tessera::server
