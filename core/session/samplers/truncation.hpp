// Steps that leave candidates out by their probabilities. Sources: SamplingStep.
#pragma once

#include "core/session/samplers/candidates.hpp"

namespace tessera::session {

// The fewest of the best whose probabilities reach `share`, at least `minimum`.
void keep_top_p(Candidates& candidates, float share, size_t minimum);

// Those with at least `share` of the best one's probability, at least the `minimum` best.
void keep_min_p(Candidates& candidates, float share, size_t minimum);

// The fewest of those nearest to the entropy whose probabilities reach `share`, at least `minimum`.
void keep_typical(Candidates& candidates, float share, size_t minimum);

// Those whose logits are at most `width` standard deviations, of the logits of all candidates, below the best.
void keep_top_n_sigma(Candidates& candidates, float width);

// All but those of a probability of at least `threshold`, of which the least likely stays; nothing changes if fewer
// than two are, or if fewer than `minimum` would stay. Whether it is done at all is the caller's draw.
void drop_top_choices(Candidates& candidates, float threshold, size_t minimum);

}  // namespace tessera::session
