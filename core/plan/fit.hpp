// The search for a placement, and what fits.
#pragma once

#include "core/plan/plan.hpp"

#include <string>

namespace tessera {

// "CPU needs 352.80 GiB, 22.50 GiB available: 330.30 GiB missing. Try ...": for a device that the plan asks too much
// of; empty for another.
std::string fit_advice(const Plan& plan, DeviceIndex device);

}  // namespace tessera
