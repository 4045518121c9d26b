// Answers held to calls of tools.
#pragma once

#include "apps/server/conversation.hpp"

namespace tessera::server {

// Holds the answer of `read`, whose syntax is known, to calls of the tools as the model's format has them. `otherwise`:
// the form of an answer without calls; null: any text. Adds to read.delivery.unenforced what the schemas of tools that
// allow that say and cannot be enforced. Throws what hold_to() throws, but where that is optional: then the answer is
// free, and each tool is added.
void hold_to_calls(ChatRequest& read, AskedCalls asked, const structure::Body* otherwise, const ModelText& model);

}  // namespace tessera::server
