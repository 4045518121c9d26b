// Rewrites the model's graph into primitives, on the devices where its weights are.
#pragma once

#include "core/plan/placement.hpp"
#include "core/plan/plan.hpp"

#include <vector>

namespace tessera {

struct LoweredGraph {
    Graph graph;
    std::vector<DeviceIndex> node_device;    // a node of `graph` each
    std::vector<DeviceIndex> weight_device;  // a storage of `graph` each: where a weight lies; others: 0
    std::vector<LoweringChoice> choices;
    std::vector<std::string> notes;
};

// Each node that no kernel computes whole, or that its parts compute sooner, is replaced by a lowering: the one the
// user named, else one of the plugin that the configuration prefers, else the cheapest of those that the core and each
// plugin put first (by priority, if it is feasible). Throws Error(TSR_UNSUPPORTED) if none
// is feasible.
LoweredGraph lower_graph(const Graph& model, const Placement& placement, const Registry& registry,
                         std::span<const tsr_device_info* const> devices, const ScheduleOptions& options);

}  // namespace tessera
