// Log probabilities of the tokens that a model proposes.
#pragma once

#include "core/session/generation.hpp"

#include <span>

namespace tessera::session {

// Of `token` and the `count` most likely ones; ties by the lower token. `logits`: one a token. Throws
// Error(TSR_INTERNAL) if all are -infinity.
TokenProbabilities probabilities_of(std::span<const float> logits, Token token, uint32_t count);

// The same of what samplers have left, which sum to 1; a token that is not among them has -infinity. Throws
// Error(TSR_INTERNAL) if there are none.
TokenProbabilities probabilities_of(std::span<const Sampler::Candidate> candidates, Token token, uint32_t count);

}  // namespace tessera::session
