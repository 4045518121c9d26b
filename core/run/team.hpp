// The core's thread team. A step runs as one parallel region with cheap barriers inside, not as one parallel loop per
// op.
#pragma once

#include "core/hardware/numa.hpp"
#include "core/run/binding.hpp"
#include "core/run/own_cpus.hpp"
#include "core/run/pieces.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

namespace tessera {

// oneTBB promises no number of workers, so a region counts those that arrive within a short time and begins with them.
// A worker that arrives later, as another process had its CPU, takes part from the next call on where the region makes
// several, and finds other regions closed. No barrier waits for a worker that has not arrived.
class Team {
  public:
    // At most `threads` workers, the calling thread among them. `placement`: where they run; the calling thread is
    // bound as the first of them until the team ends.
    explicit Team(uint32_t threads, NumaPlacement placement = {});
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    uint32_t threads() const noexcept { return threads_; }
    // Whether the system allowed all that the placement requests, for the threads that have worked so far.
    bool placed() const noexcept { return placed_.load(std::memory_order_relaxed); }

    // Calls body(worker, workers) on each worker at once, `wanted` at most (0: all), and returns when all have
    // returned. One region at a time. `body` must not throw.
    template <typename Body>
    void run(uint32_t wanted, Body& body) {
        run_region(wanted, false, entry_of<Body>(), context_of(body));
    }

    // The same for a body that makes calls numbered upwards from next_call() and ends each by end_of_call(). Workers
    // that arrive later enter it with a later call, and workers() grows.
    template <typename Body>
    void run_calls(uint32_t wanted, Body& body) {
        run_region(wanted, true, entry_of<Body>(), context_of(body));
    }

    // Of all regions since the last call: time of their workers, and the part of it in which they waited for others, in
    // seconds. Not inside a region.
    struct Time {
        double seconds = 0, waiting = 0;
    };
    Time take_time() noexcept;

    // Inside a region: returns when all its workers have called it; orders memory. For the calls that a region makes
    // on each worker: plugins' kernels.
    void barrier() noexcept;
    // The barrier after such a call. Workers must have passed the same barriers in it. Where they have not, barrier()
    // returns at once from then on until all have arrived here, and this returns false to all: the region must end
    // then. `next`: of run_calls, the same for all workers; the call that follows.
    static constexpr uint32_t kNoCall = UINT32_MAX;
    bool end_of_call(uint32_t next = kNoCall) noexcept;
    // How many workers take part in the call that is being made or comes next. Inside a region.
    uint32_t workers() const noexcept { return workers_.load(std::memory_order_relaxed); }
    // The call that comes next, at its beginning. Inside a region of run_calls.
    uint32_t next_call() const noexcept { return next_call_; }
    // For a worker that cannot continue after an exception: it takes part in no barrier from now on and must leave the
    // region. The others do not wait for it.
    void leave() noexcept;
    // The same as tsr_run.barrier.
    static void barrier(void* team, uint32_t worker) noexcept;

    // Inside a region, as tsr_run.piece.
    static uint32_t piece(void* team, uint32_t worker, uint32_t count) noexcept;

  private:
    using Entry = void (*)(void* context, uint32_t worker, uint32_t workers);
    struct Region;
    struct Arena;  // of oneTBB

    template <typename Body>
    static Entry entry_of() noexcept {
        return [](void* context, uint32_t worker, uint32_t workers) {
            (*static_cast<std::remove_reference_t<Body>*>(context))(worker, workers);
        };
    }
    template <typename Body>
    static void* context_of(Body& body) noexcept {
        return const_cast<void*>(static_cast<const void*>(&body));
    }

    void run_region(uint32_t wanted, bool calls, Entry entry, void* context);
    static void join(const std::shared_ptr<Region>& region);
    void bind_this_thread();
    template <typename Done>
    void wait_until(Done&& done) noexcept;
    void arrive(bool ends, bool waits, uint32_t next) noexcept;
    void begin_barriers(uint32_t workers) noexcept;

    uint32_t threads_;
    // How many regions still live.
    const std::shared_ptr<std::atomic<uint32_t>> regions_ = std::make_shared<std::atomic<uint32_t>>(0);
    const uint64_t number_;  // no other team of the process has it
    const NumaPlacement placement_;
    std::atomic<uint32_t> places_taken_{0};
    std::atomic<bool> placed_{true};
    OwnCpus own_cpus_;
    const std::unique_ptr<Arena> arena_;
    const std::unique_ptr<ThreadBinding> caller_;
    // Barriers of the region that runs. waiting_ counts arrivals, and in its upper half those at the end of a call;
    // workers that left have arrived at every barrier.
    static constexpr uint32_t kArrival = 1, kArrivalAtEnd = 1 << 16;
    std::atomic<uint32_t> workers_{1};
    uint32_t next_call_ = 0;
    Region* region_ = nullptr;  // one that others may still enter
    std::atomic<uint32_t> left_{0};
    // Workers did not pass the same barriers in a call of this region, or misused pieces. Stored by the last worker to
    // arrive alone, so that all workers find the same at the end of a call.
    std::atomic<bool> differed_{false};
    std::atomic<bool> misused_{false};  // a worker asked for more pieces than there can be
    std::atomic<bool> open_{false};     // barrier() returns at once
    alignas(64) std::atomic<uint32_t> waiting_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
    alignas(64) std::atomic<uint64_t> waiting_nanoseconds_{0};  // of all workers
    double region_seconds_ = 0;                                 // times workers
    Pieces pieces_;
};

}  // namespace tessera
