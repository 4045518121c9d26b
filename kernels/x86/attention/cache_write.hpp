#pragma once

#include "../layouts/byte_pages.hpp"
#include "../layouts/int16_pages.hpp"

#include <tessera/kernel.h>

namespace tessera::x86 {

extern const tsr_kernel kCacheWrite;

// The state of a prepared node.
struct CacheWrite {
    const tsr_node* node;
    // Of the cache; at most one of them is its layout.
    Int16Pages int16_pages;
    BytePages byte_pages;
};

// A node that has passed the CPU kit's check, on AVX2. Throws sdk::Failure for positions that the page table does not
// have.
void run_cache_write(const CacheWrite& write, const tsr_run& run);

}  // namespace tessera::x86
