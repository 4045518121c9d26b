// Rewrites the model's graph into primitives, on the devices where its weights are.
#pragma once

#include "core/plan/placement.hpp"
#include "core/plan/plan.hpp"

#include <vector>

namespace tessera {

struct LoweredGraph {
    Graph graph;
    std::vector<DeviceIndex> node_device;    // a node of `graph` each
    std::vector<DeviceIndex> weight_device;  // of each storage of `graph`: the device of a weight; others: 0
    std::vector<LoweringChoice> choices;
    std::vector<std::string> notes;
};

// Each node that no kernel computes whole, or that its parts compute sooner, is replaced by a lowering: the one that
// the user named, else one of the plugin that the configuration prefers, else the fastest by estimate; of lowerings
// that are about as fast, the one of the highest priority; of those whose caches differ much, one of the smaller. What
// the device of its weights cannot compute runs on another device, with a note, unless a rule of the user placed them.
// Throws Error(TSR_UNSUPPORTED) if a node cannot be computed, with each candidate's reason.
LoweredGraph lower_graph(const Graph& model, const Placement& placement, const Registry& registry,
                         std::span<const tsr_device_info* const> devices, const ScheduleOptions& options);

}  // namespace tessera
