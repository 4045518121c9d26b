// The steps that scale logits.
#pragma once

#include "core/session/samplers/candidates.hpp"

namespace tessera::session {

// Divides logits by `temperature`; 0 keeps the best alone.
void apply_temperature(Candidates& candidates, float temperature);

// A temperature from `temperature` - `range` (0 at least) to `temperature` + `range`: the entropy's share of what it
// is for as many candidates that are all alike, to the power of `exponent`, says where between them.
void apply_dynamic_temperature(Candidates& candidates, float temperature, float range, float exponent);

}  // namespace tessera::session
