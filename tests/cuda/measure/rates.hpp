// What the kernels of rates.cu are given.
#pragma once

namespace tessera::test {

struct RateArguments {
    unsigned* out;  // one a thread
    int steps;
};

struct ReadArguments {
    const void* from;  // 16-byte aligned
    unsigned* out;     // one a thread
    long long count;   // of 16 bytes, a multiple of kReadsInFlight times the threads of the grid
};

struct ChaseArguments {
    const unsigned* next;  // indices into itself, a cycle
    unsigned* at;          // the one to begin with, then the one to go on with
    int steps;
    int reserved;
};

constexpr int kRateThreads = 256;
constexpr int kReadsInFlight = 8;  // of 16 bytes a thread
constexpr int kRateChains = 8;     // independent sums of a warp, so that none waits for its own

}  // namespace tessera::test
