// Distributes pieces of work among the workers of a region.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace tessera {

// Every worker has a share of adjacent pieces, which it takes from the front, so that it reads memory sequentially;
// when it is done, it takes pieces of other shares from the back. So a slow or preempted core does not delay the
// others. Any thread, as one of the workers.
class Pieces {
  public:
    static constexpr uint32_t kMaximum = 65535;  // pieces of a phase
    static constexpr uint32_t kNone = UINT32_MAX;

    explicit Pieces(uint32_t workers) : shares_(std::make_unique<Share[]>(workers)) {}

    // A piece of `count` that has not been assigned in this phase; kNone if all are. Workers that ask in one phase
    // agree on `workers` and `count`. A phase begins with the first call that names it.
    uint32_t take(uint32_t phase, uint32_t worker, uint32_t workers, uint32_t count) noexcept {
        for (uint32_t i = 0; i < workers; ++i) {
            const uint32_t of = worker + i < workers ? worker + i : worker + i - workers;
            std::atomic<uint64_t>& share = shares_[of].state;
            for (uint64_t seen = share.load(std::memory_order_relaxed);;) {
                State state = unpacked(seen);
                if (state.phase != phase) {
                    state = {phase, static_cast<uint16_t>(uint64_t{count} * of / workers),
                             static_cast<uint16_t>(uint64_t{count} * (of + 1) / workers)};
                }
                if (state.next >= state.end) break;
                const uint32_t piece = i == 0 ? state.next++ : --state.end;
                if (share.compare_exchange_weak(seen, packed(state), std::memory_order_relaxed)) return piece;
            }
        }
        return kNone;
    }

  private:
    struct State {
        uint32_t phase;
        uint16_t next, end;
    };
    struct alignas(64) Share {
        std::atomic<uint64_t> state{0};
    };
    static uint64_t packed(State s) noexcept { return uint64_t{s.phase} << 32 | uint64_t{s.next} << 16 | s.end; }
    static State unpacked(uint64_t s) noexcept {
        return {static_cast<uint32_t>(s >> 32), static_cast<uint16_t>(s >> 16), static_cast<uint16_t>(s)};
    }

    std::unique_ptr<Share[]> shares_;
};

}  // namespace tessera
