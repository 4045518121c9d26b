// What a prediction rests on that nobody has measured.
#pragma once

#include "core/setup/plan_report.hpp"

#include <string>
#include <vector>

namespace tessera {

// A constant of the prediction that nobody has measured on such a device: of kernels' estimates, as their plugin says
// (tessera/extensions/estimate_constants.h), or the core's own.
struct AssumedConstant {
    std::string plugin, device;  // "core", "" of the core's
    std::string name, unit;      // "graph node", "us"
    double value;
};
std::vector<AssumedConstant> assumed_constants(const PlanReport& report);
// All of them as one line; empty if there are none.
std::string assumed_line(const PlanReport& report);

}  // namespace tessera
