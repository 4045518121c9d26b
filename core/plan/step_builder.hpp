// From a plan's nodes, in the order of the graph, to its step: copies between devices, runs of nodes, and the order in
// which the host goes through them.
#pragma once

#include "core/plan/plan.hpp"

#include <functional>

namespace tessera {

// The canonical instance of an activation on a device, made if need be.
using FindInstance = std::function<InstanceId(StorageId, DeviceIndex)>;

// Fills plan.step but for its waits, brings plan.nodes into the order of the actions, and adds the instances that
// copies need. The graph's order of nodes is a valid one; nodes whose inputs do not depend on each other's outputs may
// overtake each other where they run on different devices.
void build_step(Plan& plan, const FindInstance& find_instance);

}  // namespace tessera
