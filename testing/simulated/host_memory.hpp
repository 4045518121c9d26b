// The host's memory as simulated devices see it: what is page-locked, and what copies under way read and write. One for
// the process: page-locked memory serves every device. Any thread but those of queues.
#pragma once

#include "queue.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <mutex>

namespace tessera::simulated {

class HostMemory {
  public:
    static constexpr uint64_t kPage = 4096;

    static HostMemory& instance();

    // Page-locked memory of the device's own, poisoned with 0xFF. Throws sdk::Failure(TSR_DOES_NOT_FIT).
    void* allocate(const void* owner, uint64_t bytes);
    // Page-locks memory of the caller. Throws sdk::Failure(TSR_INVALID_ARGUMENT) if it is not aligned or overlaps what
    // is page-locked already.
    void lock(const void* owner, const void* address, uint64_t bytes);
    // The inverse of allocate (`allocated`) or of lock. Throws sdk::Failure(TSR_INVALID_ARGUMENT) if nothing of that
    // kind begins at the address, or if a copy under way uses it; in that case it is released none the less.
    void release(const void* owner, const void* address, bool allocated);
    // All that an owner has left.
    void release_all(const void* owner) noexcept;

    bool locked(const void* address, uint64_t bytes) const;

    // A copy of the host's memory is under way until command `index` of the queue ends.
    void transfer(const void* address, uint64_t bytes, const Queue& queue, uint32_t index);
    // Whether one that may still be under way touches these bytes.
    bool busy(const void* address, uint64_t bytes);
    void forget(const Queue& queue);

  private:
    struct Locked {
        uint64_t bytes;
        const void* owner;
        bool allocated;
    };
    struct Transfer {
        uint64_t begin, end;
        const Queue* queue;
        uint32_t index;
    };
    using AllLocked = std::map<uint64_t, Locked>;  // by address; no two overlap

    bool busy_locked(uint64_t begin, uint64_t end);

    mutable std::mutex mutex_;
    AllLocked all_locked_;
    std::list<Transfer> transfers_;
};

}  // namespace tessera::simulated
