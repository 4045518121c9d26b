// Weights of q8_row as tiles_staged.hpp multiplies them, eight blocks of 32 elements for one of 256.
#pragma once

#include "block_weights.hpp"
#include "kernels/cuda/formats/sub_block_small.hpp"

namespace tessera::cuda_kernels {

// Only rows have a scale.
template <int kParts>
struct BlockWeights<TSR_TYPE_Q8_ROW, kParts> {
    using F = Format<TSR_TYPE_Q8_ROW>;
    static constexpr int kGroup = 64, kMinimums = 0, kWords = 16 / kParts;
    uint32_t w[kWords];
    float scale;

    SIMT_DEVICE void load(const char* block, float row_scale, int s, int part) {
        sub_block_bits::get_words<F::kAlignment>(block + 64 * s + 4 * kWords * part, w);
        scale = row_scale;
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        SIMT_UNROLL
        for (int i = 0; i < kWords / 4; ++i) {
            const uint32_t sub_block[4] = {w[4 * i], w[4 * i + 1], w[4 * i + 2], w[4 * i + 3]};
            to.set_codes(s, row, kWords / 4 * part + i, sub_block);
        }
        if (part == 0) to.scales[s % 2][0][row] = scale;
        if (s == 0) to.bias[part][row] = kMagic * scale * (8 / kParts);
    }
};

}  // namespace tessera::cuda_kernels
