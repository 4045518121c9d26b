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

// How much more memory the process has than when this was made, by the pages that it uses. Cheap.
class Growth {
  public:
    Growth() : before_(used()) {}
    uint64_t bytes() const;

  private:
    static uint64_t used();
    uint64_t before_;
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
