// What a kernel may do before what was launched before it has ended, from 9.0 on (sdk/cuda/compiler/overlap.hpp).
#pragma once

#include "rows.hpp"

namespace tessera::cuda_kernels {

// Until what was launched before has ended and can be seen. A kernel that does not call it begins with it; another one
// reads nothing that such a launch may have written before it, and writes nothing. Every thread calls it.
SIMT_DEVICE void wait_for_launches() {
#ifndef TSR_CUDA_EMULATED
    asm volatile("// tessera wait" ::: "memory");
#endif
}

// Which rows, read before the wait: only the host writes ranges.
SIMT_DEVICE RowRange awaited_rows(const Rows& rows) {
    const RowRange range = actual_rows(rows);
    wait_for_launches();
    return range;
}

// The 128 bytes around an address, which may be any, are wanted in the second-level cache.
SIMT_DEVICE void ask_for([[maybe_unused]] const void* from) {
#ifndef TSR_CUDA_EMULATED
    asm volatile("// tessera prefetch [%0]" ::"l"(__cvta_generic_to_global(from)));
#endif
}

}  // namespace tessera::cuda_kernels
