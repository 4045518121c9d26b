// Runs nodes of the host: on the thread team, or, where a card computes a step's experts, on that.
#pragma once

#include "core/run/expert_streamer.hpp"
#include "core/run/memory.hpp"
#include "core/run/prepared_node.hpp"
#include "core/run/team.hpp"

#include <tessera/kernel.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>

namespace tessera {

// One thread at a time.
class HostNodes {
  public:
    // All outlive this. `nodes`: of the plan, each as it is now. A step ends early once `cancelled` is not 0.
    HostNodes(Team& team, const PlanMemory& memory, ExpertStreamer& streamer, const std::deque<PreparedNode>& nodes,
              const std::atomic<uint32_t>& cancelled)
        : team_(team), memory_(memory), streamer_(streamer), nodes_(nodes), cancelled_(cancelled) {}

    // Nodes [first, first + count), with `threads` workers (0: all of the team). Throws Error naming node, op, layer,
    // plugin and kernel; TSR_CANCELLED.
    void run(uint32_t first, uint32_t count, const tsr_range (&ranges)[TSR_RANGE_COUNT], uint32_t threads);

    // As of Executor.
    void measure(std::span<double> seconds) noexcept { seconds_ = seconds; }

  private:
    class Ending;

    void run_on_team(uint32_t first, uint32_t count, const tsr_range (&ranges)[TSR_RANGE_COUNT], uint32_t threads);
    tsr_run run_of(const tsr_range* ranges, uint32_t worker, uint32_t workers) const noexcept;
    bool call(const PreparedNode& node, tsr_run& run, uint32_t i, Ending& ending) const;

    Team& team_;
    const PlanMemory& memory_;
    ExpertStreamer& streamer_;
    const std::deque<PreparedNode>& nodes_;
    const std::atomic<uint32_t>& cancelled_;
    std::span<double> seconds_;  // where nodes are being measured
};

}  // namespace tessera
