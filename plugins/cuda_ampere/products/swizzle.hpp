// Where rows of 64 int8 lie in shared memory.
#pragma once

#include <tessera/cuda/simt.hpp>

namespace tessera::cuda_kernels {

// Sub-block `sub_block` of 16 elements of a row, in sub-blocks: in an order that depends on the row, so that one
// sub-block of eight rows is read from all banks.
SIMT_DEVICE int swizzled(int row, int sub_block) {
    return 4 * row + (sub_block ^ (row / 2 & 3));
}

}  // namespace tessera::cuda_kernels
