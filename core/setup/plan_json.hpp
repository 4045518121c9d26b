// A plan as programs read it.
#pragma once

#include "core/setup/plan_report.hpp"

#include <boost/json/object.hpp>

namespace tessera {

boost::json::object plan_json(const PlanReport& report);

}  // namespace tessera
