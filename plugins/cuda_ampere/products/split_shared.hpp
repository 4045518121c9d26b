// What a block of threads has of a weight whose scales serve 16 elements, as tiles_staged.hpp multiplies it on cards on
// which the multiply-adds of scales would cost more than tensor products: codes times the integers of their scales, as
// two int8.
#pragma once

#include "kernels/cuda/formats/sub_block_bits.hpp"
#include "kernels/cuda/matmul/tiles.hpp"
#include "swizzle.hpp"

namespace tessera::cuda_kernels {

// By what products of codes and integers of scales can be multiplied so that they stay below 2^15 - 128: the larger
// they are, the smaller is beside them what rounding of biased sums costs.
constexpr int split_factor(int type) {
    switch (type) {
        case TSR_TYPE_IQ2_K:  // 31 * 8
            return 128;
        case TSR_TYPE_IQ2_XS:  // 43 * 31
        case TSR_TYPE_IQ2_S:
        case TSR_TYPE_IQ3_K:  // 63 * 31
            return 16;
        case TSR_TYPE_IQ4_K:  // 127 * 32
        case TSR_TYPE_IQ5_K:
            return 8;
        case TSR_TYPE_IQ6_K:  // 127 * 128
            return 2;
        default:  // q6_K: 128 * 128
            return 1;
    }
}

// What the values of 16 elements are multiplied with: `scale` is the integer of their scale times split_factor.
struct SplitScale {
    uint32_t factor, offset;

    // Values have `bias` added to them, so that none is negative.
    SIMT_DEVICE SplitScale(int scale, uint32_t bias)
        : factor(static_cast<uint32_t>(scale)), offset(0x80808080u - factor * (bias * 0x10001u)) {}
    // Two products, of the values in the halves of a word. 0x8080 more than they are, they lie between 0 and 65535, so
    // that nothing is carried.
    SIMT_DEVICE uint32_t products(uint32_t values) const { return values * factor + offset; }
};

namespace sub_block_bits {

// Values of products with a bias, for the halves of a word.
constexpr uint32_t two_values(int a, int b, int bias) {
    return static_cast<uint32_t>(a + bias) | static_cast<uint32_t>(b + bias) << 16;
}
// Bytes 0 and 2, or 1 and 3, in the halves of a word.
SIMT_DEVICE uint32_t even_bytes(uint32_t word) {
    return word & 0x00FF00FFu;
}
SIMT_DEVICE uint32_t odd_bytes(uint32_t word) {
    return byte_permute(word, 0, 0x4341);
}
// Of eight bytes every second one, from the first or the second on.
SIMT_DEVICE uint32_t alternate_bytes(uint32_t first, uint32_t second, int odd) {
    return byte_permute(first, second, odd ? 0x7531u : 0x6420u);
}
// Four products that SplitScale gives, elements 0 and 1, 2 and 3, as two int8 each. Of each byte 128 is too much.
SIMT_DEVICE void split_products(uint32_t first, uint32_t second, uint32_t& high, uint32_t& low) {
    high = centred(byte_permute(first, second, 0x7531));
    low = centred(byte_permute(first, second, 0x6420));
}
// The same of elements 0 and 2, 1 and 3.
SIMT_DEVICE void split_alternate(uint32_t even, uint32_t odd, uint32_t& high, uint32_t& low) {
    high = centred(byte_permute(even, odd, 0x7351));
    low = centred(byte_permute(even, odd, 0x6240));
}

}  // namespace sub_block_bits

// Codes are stored times the integer of their scale, times kFactor, as two int8: 256 times the first and the second.
// Only blocks have a scale. kParts: threads that decode a row.
template <int kOutputs, int kParts, int kFactor>
struct SplitShared {
    simt::UInt4 codes[2][2][kOutputs * 4];
    alignas(8) float scales[2][1][kOutputs + 16];
    alignas(8) float bias[2][kOutputs];
    simt::UInt4 minimums[1][1];

    SIMT_DEVICE void begin() {}
    SIMT_DEVICE void set_sub_block(int segment, int row, int sub_block, const uint32_t (&words)[4], int scale, float) {
        using namespace sub_block_bits;
        const SplitScale by(scale * kFactor, 128);
        uint32_t high[4], low[4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t positive = centred(words[i]);
            split_alternate(by.products(even_bytes(positive)), by.products(odd_bytes(positive)), high[i], low[i]);
        }
        set_planes(segment, row, sub_block, high, low);
    }
    SIMT_DEVICE void set_planes(int segment, int row, int sub_block, const uint32_t (&high)[4],
                                const uint32_t (&low)[4]) {
        const int to = swizzled(row, sub_block);
        codes[segment % 2][0][to] = simt::UInt4{high[0], high[1], high[2], high[3]};
        codes[segment % 2][1][to] = simt::UInt4{low[0], low[1], low[2], low[3]};
    }
    SIMT_DEVICE void set_scales(int segment, int row, int part, float d, int = 0) {
        const float scale = d * (1.f / kFactor);
        if (part == 0) scales[segment % 2][0][row] = scale;
        if (segment == 0) bias[part][row] = kMagic * scale * (4 * 257 / kParts);
    }
};

}  // namespace tessera::cuda_kernels
