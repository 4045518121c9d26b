// Weights of iq3_ks as tiles_blocks.hpp multiplies them: decoded when they are stored, from words that hold several
// sub-blocks.
#pragma once

#include "block_weights.hpp"
#include "kernels/cuda/formats/sub_block_levels.hpp"

namespace tessera::cuda_kernels {

template <>
struct BlockWeights<TSR_TYPE_IQ3_KS, 1> {
    using F = Format<TSR_TYPE_IQ3_KS>;
    static constexpr int kGroup = 32, kMinimums = 0;
    uint32_t w[8], high[8];  // of 128 elements, and of the block
    uint32_t scales[2];      // with 16 added, a byte for 32 elements
    uint32_t shifted;
    float d;

    SIMT_DEVICE void load(const char* block, float row_scale, int s, int) {
        using namespace sub_block_bits;
        if (s == 0) {
            const uint32_t extra = two_at(block), low = two_at(block + 2) | two_at(block + 4) << 16;
            SIMT_UNROLL
            for (int i = 0; i < 2; ++i) scales[i] = nibbles(low, 4 * i) | bits_to_bytes(extra >> 4 * i) << 4;
            shifted = extra >> 8;
            d = row_scale;
            get_words<2>(block + 70, high);
        }
        if (s % 2 == 0) get_words<2>(block + 6 + 16 * s, w);
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace sub_block_bits;
        constexpr Levels<8> kPlain = levels(formats::kIq3kValues, 0),
                            kShifted = levels(formats::kIq3kValues, formats::kIq3kShift);
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            const int bit = 2 * s + half;  // the number of the 32 elements
            const Levels<8> values = chosen(kPlain, kShifted, shifted >> bit & 1);
            uint32_t codes[2][4];
            SIMT_UNROLL
            for (int i = 0; i < 8; ++i) {
                const uint32_t third = bit < 2 ? high[i] << (2 - bit & 31) : high[i] >> (bit - 2 & 31);
                const uint32_t which =
                    bytes_to_nibbles(bit_pairs(w[i], 4 * (s % 2) + 2 * half) | (third & 0x04040404u));
                codes[i / 4][i % 4] = choose8(values.words[0], values.words[1], which);
            }
            to.set_codes(s, row, 2 * half, codes[0]);
            to.set_codes(s, row, 2 * half + 1, codes[1]);
            const auto scale = static_cast<int>(scales[s / 2] >> 8 * (bit % 4) & 255) - 16;
            to.scales[s % 2][half][row] = d * static_cast<float>(scale);
        }
        if (s == 0) {
            const int sum =
                block_weights::integer_sum_of_bytes(scales[1], block_weights::integer_sum_of_bytes(scales[0], -8 * 16));
            to.bias[0][row] = kMagic * d * static_cast<float>(sum);
        }
    }
};

}  // namespace tessera::cuda_kernels
