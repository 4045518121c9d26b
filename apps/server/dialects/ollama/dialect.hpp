// The API of ollama, as its clients and front ends speak it.
#pragma once

#include "apps/server/dialect.hpp"

namespace tessera::server::ollama {

extern const Dialect kOllama;

// In requests.
const FieldTable& chat_table();
const FieldTable& generate_table();
const FieldTable& embed_table();
const FieldTable& embeddings_table();  // of /api/embeddings
const FieldTable& show_table();
const FieldTable& options_table();
const FieldTable& message_table();
const FieldTable& call_table();      // of a message's tool_calls
const FieldTable& function_table();  // of a call

}  // namespace tessera::server::ollama
