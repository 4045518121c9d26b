#pragma once

#include <tessera/kernel.h>

namespace tessera::cpu_x86 {

extern const tsr_kernel kCacheWrite;

// A node that has passed the CPU kit's check, on AVX2. Throws sdk::Failure for positions that the page table does not
// have.
void run_cache_write(const tsr_node& node, const tsr_run& run);

}  // namespace tessera::cpu_x86
