// Log probabilities of the tokens that a model proposes.
#pragma once

#include "core/session/generation.hpp"

#include <span>

namespace tessera::session {

// Of `token` and the `count` most likely ones; ties by the lower token. `logits`: one a token. Throws
// Error(TSR_INTERNAL) if all are -infinity.
TokenProbabilities probabilities_of(std::span<const float> logits, Token token, uint32_t count);

}  // namespace tessera::session
