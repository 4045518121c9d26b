// Writes past the caches: for results of several KiB that another worker reads next.
//
// Before a line is written to a cache, every other one that holds it gives it up, and x86 keeps the order of writes.
// Where two processors share no cache, a line that the other has read takes some 60 ns, one after another; written past
// the caches it takes none, and reading it from memory costs no more than reading it from the other's cache.
#pragma once

#include <tessera/kernel.h>

#include <xmmintrin.h>

#include <cstdint>
#include <cstring>

namespace tessera::x86 {

// Whether it pays for a result of so many bytes.
inline bool pays_past_caches(const tsr_run& run, int64_t bytes) noexcept {
    return run.workers > 1 && bytes >= (16 << 10);
}

// count: a multiple of 4. Calls that follow each other should fill whole cache lines, in order: a line that is written
// in parts, with others between, goes to memory several times.
inline void write_past_caches(float* to, const float* from, int64_t count) noexcept {
    if (reinterpret_cast<uintptr_t>(to) % 16 != 0) {
        std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < count; i += 4) _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

// Before others may read what was written so: such writes keep no order.
inline void end_past_caches() noexcept {
    _mm_sfence();
}

}  // namespace tessera::x86
