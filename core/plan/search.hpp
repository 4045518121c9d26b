// Which placement to take: those that could be best are planned in full, and the best of them is kept.
#pragma once

#include "core/plan/candidate.hpp"

namespace tessera {

// `devices`: the CPU and all that a plugin owns; they and the others outlive the plan. Throws Error(TSR_UNSUPPORTED)
// if kernels compute none of the placements that the options leave open.
Candidate search_placement(const Graph& model, const Registry& registry, Devices devices,
                           const ScheduleOptions& options);

}  // namespace tessera
