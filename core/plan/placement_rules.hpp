// A placement as rules that reproduce it.
#pragma once

#include "core/plan/placement.hpp"

#include <span>
#include <string>
#include <vector>

namespace tessera {

// Rules "REGEX=DEVICE", in the order in which they count, that place every weight of the model as `placement`
// does. Empty if all lie on the CPU.
std::vector<std::string> placement_rules(const Graph& model, const Placement& placement,
                                         std::span<const tsr_device_info* const> devices);

}  // namespace tessera
