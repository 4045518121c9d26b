// Offsets for buffers that share memory over time.
#pragma once

#include <cstdint>
#include <deque>

namespace tessera {

struct Lifetime {
    uint64_t bytes = 0;
    uint32_t first = 0;   // step that writes it first
    uint32_t last = 0;    // step that uses it last
    uint64_t offset = 0;  // the answer
};

// Places the largest buffers first, each at the lowest offset where no buffer lives at the same time. Deterministic.
// Returns the bytes needed in all. Offsets are multiples of `alignment`.
uint64_t pack_lifetimes(std::deque<Lifetime>& buffers, uint64_t alignment);

}  // namespace tessera
