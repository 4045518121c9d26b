// The API of llama-server, beside that of OpenAI, whose errors it has.
#pragma once

#include "apps/server/dialect.hpp"

namespace tessera::server {

extern const Dialect kLlama;

// In requests.
const FieldTable& plain_completion_table();
const FieldTable& infill_table();
const FieldTable& input_extra_table();  // of /infill
const FieldTable& embedding_table();    // of /embedding
const FieldTable& template_table();     // of /apply-template
const FieldTable& tokenize_table();
const FieldTable& detokenize_table();
const FieldTable& control_table();  // of /v1/chat/completions/control

}  // namespace tessera::server
