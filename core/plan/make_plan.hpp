// From a model's graph to its plan.
#pragma once

#include "core/plan/plan.hpp"

namespace tessera {

// Plans the model's graph for the hardware. Pure: nothing is opened or allocated. `registry`, `hardware` and the op set
// of `model` outlive the plan. Throws Error: TSR_UNSUPPORTED with a table of what was asked, who refused and why;
// TSR_NOT_FOUND for devices or lowerings that do not exist.
Plan make_plan(const Graph& model, const Registry& registry, const Hardware& hardware, const ScheduleOptions& options);

}  // namespace tessera
