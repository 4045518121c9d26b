// Signs of eight elements of a codebook, for nibbles by which byte_permute chooses.
#pragma once

#include <tessera/cuda/simt.hpp>

namespace tessera::cuda_kernels::block_weights {

// Bit 2 of eight nibbles, from eight bits.
SIMT_DEVICE uint32_t signs_of_nibbles(uint32_t eight) {
    const uint32_t four = eight * 0x1001u & 0x000F000Fu;
    return (four * 0x41u & 0x03030303u) * 0x24u & 0x44444444u;
}
// formats::even_signs of seven bits in each half of a word.
SIMT_DEVICE uint32_t two_even_signs(uint32_t seven) {
    uint32_t odd = seven ^ seven >> 4;
    odd ^= odd >> 2;
    return seven | ((odd ^ odd >> 1) & 0x00010001u) << 7;
}

}  // namespace tessera::cuda_kernels::block_weights
