// Carries out nodes whose experts are copied to a card for a step (Plan::streamed).
#pragma once

#include "core/plan/streaming.hpp"
#include "core/run/memory.hpp"
#include "core/run/prepared_node.hpp"
#include "core/run/recordings.hpp"
#include "core/run/team.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace tessera {

// One thread at a time. All arguments outlive it.
class ExpertStreamer {
  public:
    using Bind = std::function<PreparedNode::Bound(InstanceId)>;

    // `bind`: of the node's operands on the host, as they are when a node is run.
    ExpertStreamer(const Plan& plan, const Registry& registry, PlanMemory& memory, Team& team, Bind bind,
                   const std::atomic<uint32_t>& cancelled);
    ~ExpertStreamer();
    ExpertStreamer(const ExpertStreamer&) = delete;
    ExpertStreamer& operator=(const ExpertStreamer&) = delete;

    // Prepares all kernels, and runs each node once on a row of anything. Throws Error naming node and device.
    void load();

    // Whether the node, by its place in Plan::nodes, is streamed in steps of these ranges.
    bool takes(uint32_t node, const tsr_range (&ranges)[TSR_RANGE_COUNT]) const;

    // Computes the node: its operands on the host are read and its result is there when this returns. Throws Error
    // naming node and device, TSR_CANCELLED; nothing is under way then.
    void run(uint32_t node, const tsr_range (&ranges)[TSR_RANGE_COUNT]);

  private:
    struct Queues;   // queues and events of a device
    class Prepared;  // a node's kernels
    struct Run;      // what a run of a node holds

    Queues& queues(DeviceIndex device);
    void run(uint32_t node, const tsr_range (&ranges)[TSR_RANGE_COUNT], bool warming_up);
    void run_waves(const Prepared& prepared, Queues& queues, const tsr_range (&ranges)[TSR_RANGE_COUNT],
                   bool warming_up);
    std::vector<int32_t> named_experts(const Run& run) const;
    void fill(const Run& run, std::span<const int32_t> experts, std::byte* tensors, std::byte* ids);
    void check_cancelled() const;

    const Plan& plan_;
    const Registry& registry_;
    PlanMemory& memory_;
    Team& team_;
    Bind bind_;
    const std::atomic<uint32_t>& cancelled_;
    std::map<DeviceIndex, std::unique_ptr<Queues>> queues_;
    std::map<uint32_t, std::unique_ptr<Prepared>> prepared_;  // by the node's place in Plan::nodes
};

}  // namespace tessera
