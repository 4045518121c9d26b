// Weights of iq1_m and iq1_m_row as tiles_blocks.hpp multiplies them, with a scale for blocks alone.
//
// Elements times eight (-9, -7, -1, 1, 7 or 9) are odd, and so are scales of 16 elements of iq1_m (1 to 15). Their
// products are odd as well, and half of them, rounded down, fits into int8. What is left is half a unit of every
// element of a block: a minimum. Scales of iq1_m_row (0 to 15) may be even too: of those nothing is left, and 16
// elements have a minimum of their own.
#pragma once

#include "block_weights.hpp"
#include "kernels/cuda/formats/sub_block_codebook.hpp"

namespace tessera::cuda_kernels {
namespace block_weights {

// (value * scale - 1) / 2 of three values, in the low bytes; the scale is 2 * half_scale + 1. With `even` 1 the scale
// is 2 * half_scale, and of value * scale half.
template <int kFirst, int kSecond, int kThird>
SIMT_DEVICE uint32_t halved_products(uint32_t half_scale, uint32_t even = 0) {
    // With 128 added no byte is negative, and nothing is carried between them.
    constexpr uint32_t kOfScaleOne =
        sub_block_bits::four_values((kFirst - 1) / 2 + 128, (kSecond - 1) / 2 + 128, (kThird - 1) / 2 + 128, 0);
    constexpr auto kStep = static_cast<uint32_t>(kFirst + kSecond * 256 + kThird * 65536);
    constexpr uint32_t kOfScaleZero = sub_block_bits::four_values(128, 128, 128, 0);
    return sub_block_bits::centred((even ? kOfScaleZero : kOfScaleOne) + half_scale * kStep);
}

}  // namespace block_weights

template <int kParts>
struct BlockWeights<TSR_TYPE_IQ1_M, kParts> {
    using F = Format<TSR_TYPE_IQ1_M>;
    static constexpr int kGroup = 64, kMinimums = 8, kSubBlocks = 4 / kParts;
    uint32_t entries[2 * kSubBlocks];  // of the codebook, for eight elements each
    uint32_t nibbles, fields[2];

    SIMT_DEVICE void load(const char* block, float, int s, int part) {
        using namespace sub_block_bits;
        if (s == 0) get_words<8>(block + 48, fields);
        const char* low = block + 8 * s + 2 * kSubBlocks * part;
        if constexpr (kParts == 1) {
            nibbles = get<uint32_t>(block + 32 + 4 * s);
        } else {
            nibbles = two_at(block + 32 + 4 * s + 2 * part);
        }
        uint32_t words[kSubBlocks / 2];
        get_words<2 * kSubBlocks>(low, words);
        SIMT_UNROLL
        for (int i = 0; i < 2 * kSubBlocks; ++i)
            entries[i] = formats::kIq1Grid[(words[i / 4] >> 8 * (i % 4) & 255) | (nibbles >> 4 * i & 7) << 8];
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int part) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        const uint32_t of_segment = fields[s / 2] >> 16 * (s % 2) >> 3 * kSubBlocks * part;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            const uint32_t half_scale = of_segment >> 3 * i & 7;
            const uint32_t up = halved_products<-7, 1, 9>(half_scale), down = halved_products<-9, -1, 7>(half_scale);
            uint32_t codes[4];
            SIMT_UNROLL
            for (int j = 0; j < 2; ++j) {
                const uint32_t values = nibbles >> (8 * i + 4 * j + 3) & 1 ? down : up;
                const uint32_t which = pairs_to_nibbles(entries[2 * i + j]);
                codes[2 * j] = byte_permute(values, 0, which);
                codes[2 * j + 1] = byte_permute(values, 0, which >> 16);
            }
            to.set_codes(s, row, kSubBlocks * part + i, codes);
        }
        const float scale = 0.25f * F::block_scale(fields);
        if (part == 0) to.scales[s % 2][0][row] = scale;
        if (s == 0) to.bias[part][row] = kMagic * scale * (8 / kParts);
        if (s != 3) return;
        uint32_t halves[2];
        four_halves(0.5f * scale, 0x01010101u, halves);
        SIMT_UNROLL
        for (int i = 0; i < 2 / kParts; ++i)
            *at<simt::UInt2>(static_cast<void*>(&to.minimums[0][row]), 8 * (part + i)) =
                simt::UInt2{halves[0], halves[1]};
    }
};

template <int kParts>
struct BlockWeights<TSR_TYPE_IQ1_M_ROW, kParts> {
    using F = Format<TSR_TYPE_IQ1_M_ROW>;
    static constexpr int kGroup = 64, kMinimums = 16;
    static_assert(kParts == 1);
    uint32_t entries[8];  // of the codebook, for eight elements each
    uint32_t nibbles;     // of those
    uint32_t scales[2];   // bytes of the eight blocks of 32
    float scale;

    SIMT_DEVICE void load(const char* block, float row_scale, int s, int) {
        using namespace sub_block_bits;
        if (s == 0) {
            SIMT_UNROLL
            for (int i = 0; i < 2; ++i) {
                const char* four = block + 4 * i * F::kBlockBytes + 6;
                scales[i] = byte_at(four) | byte_at(four + F::kBlockBytes) << 8 |
                            byte_at(four + 2 * F::kBlockBytes) << 16 | byte_at(four + 3 * F::kBlockBytes) << 24;
            }
            scale = 0.25f * row_scale;
        }
        nibbles = 0;
        SIMT_UNROLL
        for (int i = 0; i < 2; ++i) {
            const char* b = block + (2 * s + i) * F::kBlockBytes;
            const uint32_t of_block = byte_at(b + 4) | byte_at(b + 5) << 8;
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j)
                entries[4 * i + j] = formats::kIq1Grid[byte_at(b + j) | (of_block >> 4 * j & 7) << 8];
            nibbles |= of_block << 16 * i;
        }
    }
    template <class Shared>
    SIMT_DEVICE void store(Shared& to, int s, int row, int) const {
        using namespace sub_block_bits;
        using namespace block_weights;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t of_group = scales[s / 2] >> (16 * (s % 2) + 4 * i);
            const uint32_t half_scale = of_group >> 1 & 7;
            const uint32_t even = ~of_group & 1;
            const uint32_t up = halved_products<-7, 1, 9>(half_scale, even),
                           down = halved_products<-9, -1, 7>(half_scale, even);
            uint32_t codes[4];
            SIMT_UNROLL
            for (int j = 0; j < 2; ++j) {
                const uint32_t values = nibbles >> (8 * i + 4 * j + 3) & 1 ? down : up;
                const uint32_t which = pairs_to_nibbles(entries[2 * i + j]);
                codes[2 * j] = byte_permute(values, 0, which);
                codes[2 * j + 1] = byte_permute(values, 0, which >> 16);
            }
            to.set_codes(s, row, i, codes);
        }
        to.scales[s % 2][0][row] = scale;
        if (s == 0) to.bias[0][row] = kMagic * scale * 8;
        if (s != 1 && s != 2) return;
        // Of eight groups of 16, two in f16 after another.
        const uint32_t half = simt::pack<simt::half_t>(0.5f * scale, 0.f);
        uint32_t minimums[4];
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t of_block = scales[s - 1] >> 8 * i;
            minimums[i] = half * (of_block & 1) | half * (of_block >> 4 & 1) << 16;
        }
        to.minimums[s - 1][row] = simt::UInt4{minimums[0], minimums[1], minimums[2], minimums[3]};
    }
};

}  // namespace tessera::cuda_kernels
