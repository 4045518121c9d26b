// Limits of a process beyond which the system ends it, with a last message that says so.
#pragma once

#include "apps/structure/channel.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::constrain {

// Allows the process `bytes` more memory than it has. A process that exceeds a limit ends; its last message on
// `channel` is kRefused and says which limit.
void limit_memory(uint64_t bytes, const structure::OpenFile& channel);

// Message of a process that may take `bytes` of memory and gets no more.
std::string out_of_memory(uint64_t bytes);

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

// Limit of the CPU time while this lives. One at a time, after limit_memory().
class TimeLimit {
  public:
    // `work`: subject of the message, "compiling it".
    TimeLimit(std::chrono::milliseconds limit, std::string_view work);
    ~TimeLimit();
    TimeLimit(const TimeLimit&) = delete;
    TimeLimit& operator=(const TimeLimit&) = delete;
};

}  // namespace tessera::constrain
