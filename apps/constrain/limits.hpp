// Limits of a process beyond which the system ends it, with a last message that says so.
#pragma once

#include "apps/structure/channel.hpp"

#include <chrono>
#include <cstdint>

namespace tessera::constrain {

// From now on the process may take so many bytes of memory more than it has. What it is ended for is told on `channel`.
void limit_memory(uint64_t bytes, const structure::OpenFile& channel);

// The processor time of what is done while it lives. Ends the process where it takes longer.
class TimeLimit {
  public:
    explicit TimeLimit(std::chrono::milliseconds limit);
    ~TimeLimit();
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace tessera::constrain
