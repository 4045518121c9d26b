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

// oneTBB promises no number of workers, so a region counts those that arrive within a short time and runs with them; a
// worker that arrives later finds the region closed and leaves. No barrier waits for a worker that has not arrived.
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
        run_region(
            wanted,
            [](void* context, uint32_t worker, uint32_t workers) {
                (*static_cast<std::remove_reference_t<Body>*>(context))(worker, workers);
            },
            const_cast<void*>(static_cast<const void*>(&body)));
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
    // then.
    bool end_of_call() noexcept;
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

    void run_region(uint32_t wanted, Entry entry, void* context);
    static void join(const std::shared_ptr<Region>& region);
    void bind_this_thread();
    template <typename Done>
    void wait_until(Done&& done) noexcept;
    void arrive(bool ends, bool waits) noexcept;
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
    uint32_t workers_ = 1;
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
