// The API of OpenAI. Conversations in its form are common to several APIs: chat_fields.hpp.
#pragma once

#include "apps/server/dialect.hpp"

namespace tessera::server {

// In requests.
const FieldTable& chat_table();
const FieldTable& completion_table();
const FieldTable& embeddings_table();

}  // namespace tessera::server
