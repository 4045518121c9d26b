// Sub-blocks of the K formats; see sub_block.hpp.
#pragma once

#include "sub_block_any.hpp"
#include "sub_block_bits.hpp"

namespace tessera::cuda_kernels {

template <>
struct Format<TSR_TYPE_Q2_K> : sub_block_bits::FormatOf<formats::BlockQ2K> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int g = 2 * (pair % 8) + odd;
        const uint32_t scale = byte_at(b + g);
        uint32_t w[4], d[1];
        words_at<4>(b + 16 + 32 * (g / 8) + 16 * (g % 2), w);
        words_at<4>(b + 80, d);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = bit_pairs(w[i], 2 * (g / 2 % 4));
        p.scale = simt::unpack_low<simt::half_t>(d[0]) * static_cast<float>(scale & 15);
        p.offset = -simt::unpack_high<simt::half_t>(d[0]) * static_cast<float>(scale >> 4);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q3_K> : sub_block_bits::FormatOf<formats::BlockQ3K> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int g = 2 * (pair % 8) + odd;
        uint32_t high[4], w[4];
        words_at<2>(b + 16 * (g % 2), high);
        words_at<2>(b + 32 + 32 * (g / 8) + 16 * (g % 2), w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = centred(bit_pairs(w[i], 2 * (g / 2 % 4)) << 5 | (high[i] >> (g / 2) & 0x01010101u) << 7);
        const uint32_t low = byte_at(b + 96 + g % 8) >> (g < 8 ? 0 : 4) & 15;
        const uint32_t upper = byte_at(b + 104 + g % 4) >> (2 * (g / 4)) & 3;
        p.scale = half_at(b + 108) * 0.03125f * static_cast<float>(static_cast<int>(low | upper << 4) - 32);
        p.offset = 0;
        return p;
    }
};

namespace sub_block_bits {

// Scale and offset of group `j` of q4_K and q5_K from the first 16 bytes of a block.
SIMT_DEVICE void scale_and_minimum(const uint32_t (&head)[4], int j, SubBlock& sub_block) {
    const int shift = 8 * (j % 4);
    const uint32_t first = head[1] >> shift, second = head[2] >> shift, third = head[3] >> shift;
    const uint32_t scale = j < 4 ? first & 63 : (third & 15) | (first >> 2 & 0x30);
    const uint32_t minimum = j < 4 ? second & 63 : (third >> 4 & 15) | (second >> 2 & 0x30);
    sub_block.scale = simt::unpack_low<simt::half_t>(head[0]) * static_cast<float>(scale);
    sub_block.offset = -simt::unpack_high<simt::half_t>(head[0]) * static_cast<float>(minimum);
}

// The same of groups 2 j and 2 j + 1, for their two sub-blocks each.
SIMT_DEVICE void two_scales(const uint32_t (&head)[4], unsigned j, SubBlock (&sub_blocks)[4]) {
    // Two groups' six bits each, in bytes 0 and 1.
    const unsigned shift = 16 * (j % 2);
    const uint32_t first = head[1] >> shift, second = head[2] >> shift, third = head[3] >> shift;
    const uint32_t scales = j < 2 ? first & 0x3F3F : (third & 0x0F0F) | (first >> 2 & 0x3030);
    const uint32_t minima = j < 2 ? second & 0x3F3F : (third >> 4 & 0x0F0F) | (second >> 2 & 0x3030);
    const float d = simt::unpack_low<simt::half_t>(head[0]), minimum = -simt::unpack_high<simt::half_t>(head[0]);
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i) {
        sub_blocks[2 * i].scale = sub_blocks[2 * i + 1].scale = d * static_cast<float>(scales >> 8 * i & 255);
        sub_blocks[2 * i].offset = sub_blocks[2 * i + 1].offset = minimum * static_cast<float>(minima >> 8 * i & 255);
    }
}

}  // namespace sub_block_bits

template <>
struct Format<TSR_TYPE_Q4_K> : sub_block_bits::FormatOf<formats::BlockQ4K> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int j = pair % 8;
        uint32_t head[4], w[4];
        words_at<16>(b, head);
        words_at<16>(b + 16 + 32 * (j / 2) + 16 * (odd), w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (j % 2));
        scale_and_minimum(head, j, p);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q5_K> : sub_block_bits::FormatOf<formats::BlockQ5K> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int j = pair % 8;
        uint32_t head[4], high[4], w[4];
        words_at<16>(b, head);
        words_at<16>(b + 16 + 16 * (odd), high);
        words_at<16>(b + 48 + 32 * (j / 2) + 16 * (odd), w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (j % 2)) | (high[i] >> j & 0x01010101u) << 4;
        scale_and_minimum(head, j, p);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q6_K> : sub_block_bits::FormatOf<formats::BlockQ6K> {
    // Codes are four times those of the format.
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b + 208) * 0.25f; }
    SIMT_DEVICE static int integer_scale(const char* b, int h) { return sub_block_bits::get<int8_t>(b + 192 + h); }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int g = 2 * (pair % 8) + odd, half = g / 8;
        uint32_t low[4], high[4];
        words_at<2>(b + 64 * half + 16 * (g % 4), low);
        words_at<2>(b + 128 + 32 * half + 16 * (g % 2), high);
        SubBlock p;
        // Six bits in the upper ones of a byte. Rotations bring each part to its place, whatever else comes with it.
        const int left_low = g % 8 < 4 ? 2 : 30, left_high = (6 - 2 * (g / 2 % 4)) & 31;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = (rotated(low[i], left_low) & 0x3C3C3C3Cu) | centred(rotated(high[i], left_high) & 0xC0C0C0C0u);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, g));
        p.offset = 0;
        return p;
    }
};

// Sub-blocks that lie in the same bytes, for a lane to take at once; see few_rows.hpp. Written out, since compilers do
// not see what calls of Format::at share.

// 64 elements in the low and high nibbles of 32 bytes.
struct NibbleUnits {
    static constexpr int kSubBlocks = 4;
    static constexpr bool kNeighbours = true;
    SIMT_DEVICE static unsigned index(unsigned unit, int i) { return 4 * unit + static_cast<unsigned>(i); }
};
template <>
struct Units<TSR_TYPE_Q4_K> : NibbleUnits {
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float, SubBlock (&sub_blocks)[kSubBlocks]) {
        using namespace sub_block_bits;
        const char* b = blocks + unit / 4 * sizeof(formats::BlockQ4K);
        uint32_t head[4], w[8];
        get_words<16>(b, head);
        get_words<16>(b + 16 + 32 * (unit % 4), w);
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) {
            sub_blocks[i / 4].codes[i % 4] = nibbles(w[i], 0);
            sub_blocks[2 + i / 4].codes[i % 4] = nibbles(w[i], 4);
        }
        two_scales(head, unit % 4, sub_blocks);
    }
};
template <>
struct Units<TSR_TYPE_Q5_K> : NibbleUnits {
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float, SubBlock (&sub_blocks)[kSubBlocks]) {
        using namespace sub_block_bits;
        const char* b = blocks + unit / 4 * sizeof(formats::BlockQ5K);
        uint32_t head[4], high[8], w[8];
        get_words<16>(b, head);
        get_words<16>(b + 16, high);
        get_words<16>(b + 48 + 32 * (unit % 4), w);
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) {
            const uint32_t bits = high[i] >> 2 * (unit % 4);
            sub_blocks[i / 4].codes[i % 4] = nibbles(w[i], 0) | (bits << 4 & 0x10101010u);
            sub_blocks[2 + i / 4].codes[i % 4] = nibbles(w[i], 4) | (bits << 3 & 0x10101010u);
        }
        two_scales(head, unit % 4, sub_blocks);
    }
};

// Every second sub-block of 128 elements, in the pairs of bits of 16 bytes and what belongs to them.
struct BitPairUnits {
    static constexpr int kSubBlocks = 4;
    static constexpr bool kNeighbours = false;
    SIMT_DEVICE static unsigned index(unsigned unit, int i) {
        return 8 * (unit / 2) + unit % 2 + 2 * static_cast<unsigned>(i);
    }
};
template <>
struct Units<TSR_TYPE_Q2_K> : BitPairUnits {
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float, SubBlock (&sub_blocks)[kSubBlocks]) {
        using namespace sub_block_bits;
        const char* b = blocks + unit / 4 * sizeof(formats::BlockQ2K);
        const unsigned part = unit / 2 % 2, odd = unit % 2;
        uint32_t w[4], scales[2], d[1];
        get_words<4>(b + 8 * part, scales);
        get_words<4>(b + 16 + 32 * part + 16 * odd, w);
        get_words<4>(b + 80, d);
        const float scale = simt::unpack_low<simt::half_t>(d[0]), minimum = -simt::unpack_high<simt::half_t>(d[0]);
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) sub_blocks[i].codes[j] = bit_pairs(w[j], 2 * i);
            const uint32_t packed = scales[i / 2] >> (16 * (i % 2) + 8 * odd);
            sub_blocks[i].scale = scale * static_cast<float>(packed & 15);
            sub_blocks[i].offset = minimum * static_cast<float>(packed >> 4 & 15);
        }
    }
};
template <>
struct Units<TSR_TYPE_Q3_K> : BitPairUnits {
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float, SubBlock (&sub_blocks)[kSubBlocks]) {
        using namespace sub_block_bits;
        const char* b = blocks + unit / 4 * sizeof(formats::BlockQ3K);
        const unsigned part = unit / 2 % 2, odd = unit % 2;
        uint32_t high[4], w[4], scales[3];
        get_words<2>(b + 16 * odd, high);
        get_words<2>(b + 32 + 32 * part + 16 * odd, w);
        get_words<2>(b + 96, scales);
        const float d = half_at(b + 108) * 0.03125f;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const uint32_t bit = rotated(high[j], static_cast<int>((7 - i - 4 * part) & 31)) & 0x80808080u;
                sub_blocks[i].codes[j] = (rotated(w[j], (5 - 2 * i) & 31) & 0x60606060u) | centred(bit);
            }
            // Group g = 8 part + 2 i + odd: its low nibble is in byte g % 8, its upper bits in byte 8 + g % 4.
            const uint32_t low = scales[i / 2] >> (16 * (i % 2) + 8 * odd + 4 * part) & 15;
            const uint32_t upper = scales[2] >> (8 * (2 * (i % 2) + odd) + 2 * (2 * part + i / 2)) & 3;
            sub_blocks[i].scale = d * static_cast<float>(static_cast<int>(low | upper << 4) - 32);
            sub_blocks[i].offset = 0;
        }
    }
};
template <>
struct Units<TSR_TYPE_Q6_K> : BitPairUnits {
    SIMT_DEVICE static void load(const char* blocks, unsigned unit, float, SubBlock (&sub_blocks)[kSubBlocks]) {
        using namespace sub_block_bits;
        const char* b = blocks + unit / 4 * sizeof(formats::BlockQ6K);
        const unsigned part = unit / 2 % 2, odd = unit % 2;
        uint32_t low[2][4], high[4];
        get_words<2>(b + 64 * part + 16 * odd, low[0]);
        get_words<2>(b + 64 * part + 32 + 16 * odd, low[1]);
        get_words<2>(b + 128 + 32 * part + 16 * odd, high);
        const char* scales = b + 192 + 8 * part + odd;
        const float d = half_at(b + 208) * 0.25f;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const uint32_t nibble = i < 2 ? low[i % 2][j] << 2 : low[i % 2][j] >> 2;
                const uint32_t pair = i < 3 ? high[j] << (6 - 2 * i) : high[j];
                sub_blocks[i].codes[j] = (nibble & 0x3C3C3C3Cu) | centred(pair & 0xC0C0C0C0u);
            }
            sub_blocks[i].scale = d * static_cast<float>(get<int8_t>(scales + 2 * i));
            sub_blocks[i].offset = 0;
        }
    }
};

}  // namespace tessera::cuda_kernels
