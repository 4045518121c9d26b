// A plan as people read it.
#pragma once

#include "core/setup/plan_report.hpp"

#include <string>

namespace tessera::app {

// `why`: with the reasons for what was chosen.
std::string plan_text(const PlanReport& report, bool why);

}  // namespace tessera::app
