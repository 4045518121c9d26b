// From chosen kernels and layouts to a plan: the address of each storage, the actions of a step, and every byte.
#pragma once

#include "core/plan/layouts.hpp"
#include "core/plan/lower.hpp"
#include "core/plan/plan.hpp"

#include <deque>
#include <vector>

namespace tessera {

Plan assemble(LoweredGraph lowered, std::deque<ChosenNode> chosen, const Registry& registry,
              std::vector<const tsr_device_info*> devices, const ScheduleOptions& options);

}  // namespace tessera
