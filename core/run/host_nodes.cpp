#include "core/run/host_nodes.hpp"

#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/registry/plugin_log.hpp"

#include <chrono>
#include <optional>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

// After which node the workers of a region leave it: the first that failed, or at which the step was cancelled.
class HostNodes::Ending {
  public:
    explicit Ending(uint32_t nodes) noexcept : nodes_(nodes), after_(nodes) {}

    // Any worker. The first failure counts, also after a cancellation.
    void fail(uint32_t node, const Error& error) {
        if (failed_.exchange(true)) return;
        failure_ = error;
        after_.store(node, std::memory_order_release);
    }
    // The first worker.
    void cancel(uint32_t node) noexcept {
        uint32_t none = nodes_;
        after_.compare_exchange_strong(none, node);
    }
    // The number of nodes: none.
    uint32_t after() const noexcept { return after_.load(std::memory_order_acquire); }
    // Once all workers have left.
    const std::optional<Error>& failure() const noexcept { return failure_; }

  private:
    const uint32_t nodes_;
    std::atomic<uint32_t> after_;
    std::atomic<bool> failed_{false};
    std::optional<Error> failure_;
};

void HostNodes::run(uint32_t first, uint32_t count, const tsr_range (&ranges)[TSR_RANGE_COUNT], uint32_t threads) {
    const uint32_t end = first + count;
    for (uint32_t i = first; i < end; ++i) {
        if (!streamer_.takes(i, ranges)) continue;
        if (first < i) run_on_team(first, i - first, ranges, threads);
        first = i + 1;
        const auto begin = Clock::now();
        streamer_.run(i, ranges);
        if (!seconds_.empty()) seconds_[i] += seconds_since(begin);
    }
    if (first < end) run_on_team(first, end - first, ranges, threads);
}

// Nodes [first, first + count) of the plan.
void HostNodes::run_on_team(uint32_t first, uint32_t count, const tsr_range (&ranges)[TSR_RANGE_COUNT],
                            uint32_t threads) {
    Ending ending(count);
    auto region = [&](uint32_t worker, uint32_t workers) {
        const WorkerInStep in_step;
        tsr_run together = run_of(ranges, worker, workers);
        tsr_run alone = together;
        alone.workers = 1;
        alone.barrier = [](void*, uint32_t) {};
        alone.piece = nullptr;
        const bool measured = worker == 0 && !seconds_.empty();
        auto before = measured ? Clock::now() : Clock::time_point();
        const auto after = [&](uint32_t i) {
            while (i < count && nodes_[first + i].idle(ranges)) ++i;
            return i;
        };
        const uint32_t begin = after(team_.next_call());
        // The others have left before a worker that came late.
        if (ending.after() < begin) return;
        for (uint32_t i = begin, next; i < count; i = next) {
            const PreparedNode& node = nodes_[first + i];
            next = after(i + 1);
            // Short nodes that follow each other are computed by the first worker, and the others wait for the last.
            const bool short_node = node.suits_one_worker(ranges);
            const bool goes_on = short_node && next < count && nodes_[first + next].suits_one_worker(ranges);
            if (!short_node) {
                // A worker that has not passed the barriers of the call cannot continue with the others.
                if (!call(node, together, i, ending)) return team_.leave();
            } else if (worker == 0 && ending.after() == count) {  // after a failure the rest of them is left out
                call(node, alone, i, ending);
            }
            if (!goes_on && !team_.end_of_call(next < count ? next : Team::kNoCall)) {
                ending.fail(
                    i, Error(TSR_INTERNAL, describe(node.running()) + ": its workers did not pass the same barriers"));
                return;
            }
            if (measured) {
                const auto now = Clock::now();
                seconds_[first + i] += std::chrono::duration<double>(now - before).count();
                before = now;
            }
            if (goes_on) continue;
            // A worker that is ahead may already have failed at a later node: all leave after the same node.
            if (ending.after() <= i) return;
            together.workers = team_.workers();
        }
    };
    team_.run_calls(threads, region);
    print_plugin_log();
    if (ending.after() == count) return;
    if (const auto& failure = ending.failure()) nodes_[first + ending.after()].fail(*failure);
    fail(TSR_CANCELLED, "the step was cancelled");
}

tsr_run HostNodes::run_of(const tsr_range* ranges, uint32_t worker, uint32_t workers) const noexcept {
    tsr_run run{};
    run.struct_size = sizeof run;
    run.ranges = ranges;
    run.workspace = memory_.workspace(0);
    run.worker = worker;
    run.workers = workers;
    run.team = &team_;
    run.barrier = Team::barrier;
    run.piece = Team::piece;
    static_assert(sizeof cancelled_ == sizeof *run.cancelled);
    run.cancelled = reinterpret_cast<const uint32_t*>(&cancelled_);
    return run;
}

// Node i of a region. Whether the kernel returned, be it with a failure, and so passed its barriers.
bool HostNodes::call(const PreparedNode& node, tsr_run& run, uint32_t i, Ending& ending) const {
    const tsr_status* status = nullptr;
    try {
        status = node.run(run);
    } catch (const Error& error) {
        ending.fail(i, error);
        return false;
    }
    try {
        check_call(node.running(), status);
    } catch (const Error& error) {
        ending.fail(i, error);
    }
    if (run.worker == 0 && cancelled_.load(std::memory_order_relaxed)) ending.cancel(i);
    return true;
}

}  // namespace tessera
