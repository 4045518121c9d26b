// Limits of a process beyond which the system ends it, with a last message that says so.
#pragma once

#include "apps/structure/channel.hpp"

#include <chrono>
#include <cstdint>

namespace tessera::constrain {

// From now on the process may take so many bytes of memory more than it has. What it is ended for is told on `channel`.
void limit_memory(uint64_t bytes, const structure::OpenFile& channel);

// Bytes that this process has and shares with no other: what it has written since it began.
uint64_t own_memory();

// How much more memory a process has of its own than when this was made, with what it has written of pages that it
// shared then, which its resident size does not show. Exact where it has grown by kUnseen since it was counted last;
// else that count and all faults since, each of which gives a page at most. Cheap.
class Growth {
  public:
    static constexpr uint64_t kUnseen = 4 << 20;

    Growth();
    uint64_t bytes();

  private:
    // By which each new page is seen in one of both: one that is copied as a fault, huge ones in the size.
    struct Signs {
        uint64_t faults = 0, resident = 0;  // bytes
    };
    static Signs signs();

    uint64_t before_, counted_ = 0;
    Signs last_;
};

// The processor time of what is done while it lives. Ends the process where it takes longer.
class TimeLimit {
  public:
    explicit TimeLimit(std::chrono::milliseconds limit);
    ~TimeLimit();
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace tessera::constrain
