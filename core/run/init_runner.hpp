// Runs the init nodes of a plan.
#pragma once

#include "core/plan/packing.hpp"
#include "core/plan/plan.hpp"
#include "core/run/loader.hpp"
#include "core/run/memory.hpp"
#include "core/run/prepared_node.hpp"
#include "core/run/team.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace tessera {

// On the loading thread. Functions throw Error naming the weights that are read, the node with its op and device, and
// what the source throws; after a failure nothing is under way on a device.
class InitRunner {
  public:
    // Stores canonical rows of a whole weight in an instance.
    using Put = std::function<void(const Instance& instance, std::span<const std::byte> rows)>;

    // `buffers`: of loading, on the host. All outlive this.
    InitRunner(const Plan& plan, const Registry& registry, PlanMemory& memory, const WeightSource& source, Team& team,
               std::span<std::byte> buffers)
        : plan_(plan), registry_(registry), memory_(memory), source_(source), team_(team), buffers_(buffers) {}

    // Bytes of weights that the node is made from, for progress.
    uint64_t bytes(const PlannedNode& node) const;
    // A node of the host, on canonical copies of its inputs; `put` is called for each instance that gets a result.
    void run_on_host(const PlannedNode& node, const Put& put);
    // A node of a device, whose weights are there already; returns when it has ended.
    void run_on_device(const PlannedNode& node);

  private:
    const Storage& storage(InstanceId id) const { return plan_.graph.storage(plan_.instances[id].storage); }
    template <typename Body>
    void for_node(const PlannedNode& node, Body&& body) const;
    void run(const PreparedNode& node, void* workspace);
    void upload(InstanceId input, OpenDevice& device, std::byte* to);
    void pack_result(InstanceId made, const std::byte* rows, OpenDevice& device);

    const Plan& plan_;
    const Registry& registry_;
    PlanMemory& memory_;
    const WeightSource& source_;
    Team& team_;
    std::span<std::byte> buffers_;
};

}  // namespace tessera
