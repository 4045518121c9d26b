// Runs a plan: allocates it, loads it, and takes step after step.
#pragma once

#include "core/plan/plan.hpp"
#include "core/run/deferred.hpp"
#include "core/run/loader.hpp"
#include "core/run/memory.hpp"
#include "core/run/team.hpp"

#include <tessera/kernel.h>

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

// How far weights that are packed between steps have come (PackWeights::kBetweenSteps).
struct PackingProgress {
    uint64_t done_bytes = 0;  // as the file has them
    uint64_t total_bytes = 0;
    double seconds = 0;
};

// One thread at a time, except where said otherwise. After load no function allocates above 64 KiB.
class Executor {
  public:
    // Allocates what the plan counts. `registry`, `team` and `plan.devices` outlive the executor.
    Executor(Plan plan, const Registry& registry, Team& team);
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    // Fills the weights, prepares every kernel, touches reserved memory and runs every segment once on rows of nothing
    // but zeros. `source` outlives the executor if the plan maps or defers weights.
    void load(const WeightSource& source, const LoadProgress& progress = {});

    const Plan& plan() const noexcept { return plan_; }

    // Host memory of an input of the graph ("tokens", ...), to be written between steps. Empty if the graph has none of
    // that name.
    std::span<std::byte> input(std::string_view name);

    // Takes one step with `threads` workers (0: all of the team). Throws Error naming node, op, layer and device. After
    // an error the cached rows of this step are undefined and everything else is as it was. While weights wait to be
    // packed, every step but the first begins with that, for a weight at least: for as long as the step before took,
    // and for a tenth of that if the step has many rows.
    void run(const std::array<tsr_range, TSR_RANGE_COUNT>& ranges, uint32_t threads = 0);

    // Packs one of the weights that wait, if any does; for callers that have nothing else to do.
    void pack_one();
    PackingProgress packing() const noexcept;

    // From now on adds to seconds[i] what plan().nodes[i] takes on the host, its barrier included; an empty span ends
    // that.
    void measure(std::span<double> seconds) noexcept { seconds_ = seconds; }

    // Host memory of an output of the graph ("logits"), valid until the next step.
    const std::byte* output(std::string_view name) const;

    // Copies whole cache pages, of every layer: {from, to}.
    void copy_pages(std::span<const std::pair<uint32_t, uint32_t>> pages);

    bool lock_memory() const { return memory_.lock_host(); }

  private:
    struct Prepared {
        const PlannedNode* planned = nullptr;
        std::unique_ptr<NodeView> view;
        void* state = nullptr;
        std::vector<void*> data;
        int32_t skip_range = TSR_RANGE_FIXED;  // the node has nothing to do if this range is empty
    };

    void* host_address(InstanceId id) const;
    Prepared prepare(const PlannedNode& planned) const;
    static void release(const Prepared& node) noexcept;
    void pack_for(double seconds);
    void take_step(const std::array<tsr_range, TSR_RANGE_COUNT>& ranges, uint32_t threads = 0);
    void run_on_team(const Segment& segment, uint32_t threads);
    void enqueue(const Segment& segment);
    void transfer(const Transfer& transfer);
    [[noreturn]] void fail_node(const Prepared& node, const tsr_status* status) const;

    Plan plan_;
    const Registry& registry_;
    Team& team_;
    PlanMemory memory_;
    DeferredWeights deferred_;
    const WeightSource* source_ = nullptr;
    double last_step_seconds_ = 0, packing_seconds_ = 0;
    std::deque<Prepared> nodes_;
    std::vector<void*> device_ranges_;  // a device each; nullptr for the CPU
    std::array<tsr_range, TSR_RANGE_COUNT> ranges_{};
    std::span<double> seconds_;  // where nodes are being measured
};

}  // namespace tessera
