// Keeps the threads of a team apart.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tessera {

// A thread that wakes up may be put on the CPU of the thread that woke it, if the others are in use at that moment, and
// the system leaves both there for several milliseconds after one of the others has become idle. Every barrier then
// takes a change of threads, some 50 us. So a thread that finds another one of the same region on its CPU moves.
//
// Thread-safe, but for begin.
class OwnCpus {
  public:
    OwnCpus();

    // A new region, of which the calling thread is the first. One at a time.
    void begin() noexcept;
    // The calling thread joins the region. If another thread of it has been found on this CPU, it moves to one that
    // none has been found on, out of those that it may run on; where there is none, or the system does not allow it,
    // it stays.
    void join() noexcept;

  private:
    bool take(uint32_t cpu) noexcept;

    std::vector<std::atomic<uint32_t>> region_of_;  // the last one that a thread was on this CPU for
    uint32_t region_ = 0;
};

}  // namespace tessera
