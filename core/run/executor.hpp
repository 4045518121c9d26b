// Runs a plan: allocates, loads, and takes steps.
#pragma once

#include "core/plan/plan.hpp"
#include "core/plan/step_check.hpp"
#include "core/run/deferred.hpp"
#include "core/run/expert_streamer.hpp"
#include "core/run/host_nodes.hpp"
#include "core/run/loader.hpp"
#include "core/run/memory.hpp"
#include "core/run/page_copies.hpp"
#include "core/run/prepared_node.hpp"
#include "core/run/recordings.hpp"
#include "core/run/team.hpp"
#include "core/run/tracks.hpp"

#include <tessera/kernel.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera {

// One thread at a time, but for cancel. After load no function allocates above 64 KiB.
class Executor {
  public:
    // Allocates what the plan counts. `registry`, `team` and `plan.devices` outlive the executor.
    Executor(Plan plan, const Registry& registry, Team& team);
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    // Fills the weights, prepares every kernel, touches reserved memory, runs every node once on rows of nothing but
    // zeros and makes recordings. `source` outlives the executor if the plan maps or defers weights.
    void load(const WeightSource& source, const LoadProgress& progress = {});

    const Plan& plan() const noexcept { return plan_; }
    // What loading found out about the devices, a line each.
    std::span<const std::string> notes() const noexcept { return notes_; }

    // From now on the order of each step's accesses is checked; run and finish throw Error(TSR_INTERNAL) that names
    // accesses that are not ordered.
    void check_order();

    // Host memory of an input of the graph ("tokens", ...), to be written before the next step and valid until it is
    // submitted. Empty if the graph has none of that name. Waits for an earlier step that still reads it. Throws what
    // finish throws.
    std::span<std::byte> input(std::string_view name);

    // Takes one step with `threads` workers (0: all of the team) and waits for its end. Throws Error naming node, op,
    // layer, device, plugin and kernel; TSR_CANCELLED after cancel; TSR_DEVICE_LOST if a device is lost: every later
    // step fails, too. After an error nothing is in flight, the cached rows of all steps since the last finish are
    // undefined, and everything else is as it was. While weights wait to be packed, every step but the first begins
    // with packing at least one of them, for as long as the previous step took, or a tenth of that if the step has many
    // rows. `output`: the one of the graph that is wanted: what others alone need is not computed; empty: all.
    void run(const StepSize& size, uint32_t threads = 0, std::string_view output = {});

    // Starts a step without outputs and returns while devices work on it: as many as Plan's slots can be in flight.
    // `output`: as of run. Throws as run does, also for the steps before.
    void submit(const StepSize& size, uint32_t threads = 0, std::string_view output = {});
    // Waits for all steps that were submitted. Throws as run does.
    void finish();
    // Steps that have been submitted and not been waited for.
    uint64_t under_way() const noexcept { return submitted_ - finished_; }

    // The step that runs ends early, with Error(TSR_CANCELLED). Any thread. Without one nothing happens.
    void cancel() noexcept { cancelled_.store(1, std::memory_order_relaxed); }

    // Packs one of the weights that wait, if any does; for callers that have nothing else to do.
    void pack_one();
    PackingProgress packing() const noexcept { return deferred_.progress(); }

    // From now on adds to seconds[i] the time of plan().nodes[i] on the host, with the barrier after it if there is
    // one; an empty span stops this.
    void measure(std::span<double> seconds) noexcept { host_nodes_.measure(seconds); }

    // Host memory of an output of the graph ("logits"), valid until the next step.
    const std::byte* output(std::string_view name) const;

    // Copies whole pages of every cache of a group of the plan: {from, to}. Later steps come after that. Throws as run
    // does; the pages copied to are undefined then, too.
    void copy_pages(uint32_t group, std::span<const std::pair<uint32_t, uint32_t>> pages);

    // A page of every cache of a group of the plan, page_bytes() of them, to host memory and back, after the steps that
    // were submitted; done on return. Throws as run does; after a failure of load_page the page is undefined.
    uint64_t page_bytes(uint32_t group) const { return page_copies_.page_bytes(group); }
    void save_page(uint32_t group, uint32_t page, std::span<std::byte> to);
    void load_page(uint32_t group, uint32_t page, std::span<const std::byte> from);

    bool lock_memory() const { return memory_.lock_host(); }

  private:
    class StepVisitor;

    PreparedNode prepare(const PlannedNode& planned) const;
    PreparedNode::Bound bind(InstanceId id) const;
    void pack_for(double seconds);
    void warm_up();
    void find_unneeded();
    void choose_output(std::string_view name);
    void take_step(const StepSize& size, uint32_t threads, bool outputs);
    void enqueue(ActionId id, const StepBounds& bounds);
    void copy(const Action& action, uint32_t slot);
    uint64_t input_bytes() const;
    void finish_up_to(uint64_t steps);
    std::vector<Error> drain() noexcept;
    [[noreturn]] void abandon(const Error& error);
    void check_faults() const;

    Plan plan_;
    const Registry& registry_;
    Team& team_;
    PlanMemory memory_;
    Tracks tracks_;
    PageCopies page_copies_;
    Recordings recordings_;
    std::optional<Error> lost_;    // of the step that found a device lost
    std::set<InstanceId> direct_;  // staging memory that is not used: its two devices reach each other
    DeferredWeights deferred_;
    const WeightSource* source_ = nullptr;
    double last_step_seconds_ = 0;
    std::deque<PreparedNode> nodes_;
    // Of an output of the graph: what others need and it does not.
    struct Unneeded {
        std::string output;
        std::vector<uint32_t> nodes;  // of the plan
        std::set<StorageId> storages;
    };
    std::vector<Unneeded> unneeded_;      // an output each
    const Unneeded* left_out_ = nullptr;  // of the step that is being taken
    const Unneeded* recorded_ = nullptr;  // of recordings
    ExpertStreamer streamer_;
    HostNodes host_nodes_;
    std::unique_ptr<StepChecker> checker_;
    std::vector<std::string> notes_;
    uint64_t submitted_ = 0, finished_ = 0;   // steps
    tsr_range ranges_[TSR_RANGE_COUNT] = {};  // of the step that is being put on the tracks
    StepBounds bounds_;
    std::atomic<uint32_t> cancelled_{0};
};

}  // namespace tessera
