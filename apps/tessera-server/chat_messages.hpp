// Conversations in requests.
#pragma once

#include "apps/tessera-server/json_fields.hpp"
#include "apps/tessera-server/model_host.hpp"

#include <vector>

namespace tessera::server {

// The text of a conversation by the model's template, and its tokens. Throws ApiError.
text::WrittenChat write_chat(const Fields& fields, const ServedModel& model);

}  // namespace tessera::server
