// Where nodes run: with their weights and caches, or elsewhere if that device cannot compute them.
#pragma once

#include "core/graph/graph.hpp"
#include "core/plan/options.hpp"
#include "core/plan/placement.hpp"
#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

namespace tessera {

// Devices of caches by the layer that they belong to: all nodes that access a cache run on its device.
using CacheDevices = std::map<int, DeviceIndex>;

bool touches_cache(const Graph& graph, const Node& node);

// Answers for graphs that hold weights of the model, by their names. Refers to what it is constructed from.
class NodeDevices {
  public:
    NodeDevices(const Graph& model, const Placement& placement, const Registry& registry,
                std::span<const tsr_device_info* const> devices, const ScheduleOptions& options);

    // A node follows its matrices, the largest first; one without any runs on `otherwise`. Of nodes that run once, at
    // load, it is the CPU, which must be able to compute them; plan_init_nodes decides where they run.
    DeviceIndex device_of(const Graph& graph, const Node& node, DeviceIndex otherwise) const;

    // Whether matrices of the node lie on different devices.
    bool matrices_apart(const Graph& graph, const Node& node) const;

    // Of the weight of this name; nothing for a name that is no weight of the model.
    std::optional<DeviceIndex> weight_device(const std::string& name) const;

    // `inherited`: the device of the node that the graph was written for; for the model's graph, none: each layer's
    // own. `moving`: where nodes of a cache cannot be computed, the cache is placed on the device that computes them
    // all the soonest.
    CacheDevices cache_devices(const Graph& graph, std::optional<DeviceIndex> inherited, bool moving) const;

    // A description of the user's rule that keeps the node on the device of its matrices; empty if none does.
    std::string rule_that_holds(const Graph& graph, const Node& node) const;

    // What moving the node's activations from one device to another costs, in seconds of a token of generation.
    double crossing_seconds(const Graph& graph, const Node& node, DeviceIndex from, DeviceIndex to) const;

  private:
    const Placement& placement_;
    const Registry& registry_;
    std::span<const tsr_device_info* const> devices_;
    const ScheduleOptions& options_;
    std::unordered_map<std::string, DeviceIndex> weight_device_;
    std::unordered_map<std::string, int32_t> weight_rule_;  // of the user, in PlacementOptions::rules
};

}  // namespace tessera
