// What the kernels of rates.cu are given.
#pragma once

namespace tessera::test {

struct RateArguments {
    unsigned* out;  // one a thread
    int steps;
};

struct ChaseArguments {
    const unsigned* next;  // indices into itself, a cycle
    unsigned* at;          // the one to begin with, then the one to go on with
    int steps;
    int reserved;
};

constexpr int kRateThreads = 256;
constexpr int kRateChains = 8;  // independent sums of a warp, so that none waits for its own

}  // namespace tessera::test
