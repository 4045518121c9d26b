// Where rows of 64 int8 lie in shared memory.
#pragma once

#include <tessera/cuda/simt.hpp>

namespace tessera::cuda_kernels {

// Piece `piece` of 16 elements of a row, in pieces: in an order that depends on the row, so that one piece of eight
// rows is read from all banks.
SIMT_DEVICE int swizzled(int row, int piece) {
    return 4 * row + (piece ^ (row / 2 & 3));
}

}  // namespace tessera::cuda_kernels
