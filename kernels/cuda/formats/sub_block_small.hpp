// Sub-blocks of the formats with blocks of 32 elements, and of those that hold int8 as they are; see sub_block.hpp.
#pragma once

#include "sub_block_any.hpp"
#include "sub_block_bits.hpp"

namespace tessera::cuda_kernels {

// Codes 0 .. 15 less 8, times 16: a nibble in the upper half of its byte needs one operation.
template <>
struct Format<TSR_TYPE_Q4_0> : sub_block_bits::FormatOf<formats::BlockQ4_0> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        uint32_t w[4];
        words_at<2>(b + 2, w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = centred(w[i] << (odd == 0 ? 4 : 0) & 0xF0F0F0F0u);
        p.scale = half_at(b) * 0.0625f;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q4_1> : sub_block_bits::FormatOf<formats::BlockQ4_1> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        uint32_t w[4];
        words_at<4>(b + 4, w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (odd));
        p.scale = half_at(b);
        p.offset = half_at(b + 2);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q5_0> : sub_block_bits::FormatOf<formats::BlockQ5_0> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const uint32_t high = two_at(b + 2 + 2 * (odd));
        uint32_t w[4];
        words_at<2>(b + 6, w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = centred(nibbles(w[i], 4 * (odd)) << 3 | bits_to_high_bits(high >> 4 * i));
        p.scale = half_at(b) * 0.125f;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q5_1> : sub_block_bits::FormatOf<formats::BlockQ5_1> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const uint32_t high = two_at(b + 4 + 2 * (odd));
        uint32_t w[4];
        words_at<8>(b + 8, w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) p.codes[i] = nibbles(w[i], 4 * (odd)) | bits_to_bytes(high >> 4 * i) << 4;
        p.scale = half_at(b);
        p.offset = half_at(b + 2);
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q8_0> : sub_block_bits::FormatOf<formats::BlockQ8_0> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        SubBlock p;
        words_at<2>(b + 2 + 16 * (odd), p.codes);
        p.scale = half_at(b);
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q6_0> : sub_block_bits::FormatOf<formats::BlockQ6_0> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int half = odd;
        uint32_t high[2], w[4];
        words_at<2>(b + 2, high);
        words_at<2>(b + 10, w);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i)
            p.codes[i] = centred(nibbles(w[i], 4 * half) << 2 | bit_pairs(high[i % 2], 4 * (i / 2) + 2 * half) << 6);
        p.scale = half_at(b) * 0.25f;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_MXFP4> : sub_block_bits::FormatOf<formats::BlockMxfp4> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        constexpr Table16 kTable = table16(formats::kMxfp4Values);
        const char* b = block(blocks, pair);
        uint32_t w[4];
        words_at<1>(b + 1, w);
        SubBlock p;
        look_up_half(kTable, w, odd, p.codes);
        p.scale = formats::half_e8m0_to_f32(get<uint8_t>(b));
        p.offset = 0;
        return p;
    }
    SIMT_DEVICE static NibbleLevels nibbles_at(const char* blocks, unsigned pair, float) {
        using namespace sub_block_bits;
        constexpr Table16 kLevels = sum_table(formats::kMxfp4Values);
        static_assert(is_sum_table(kLevels, formats::kMxfp4Values, 0));
        const char* b = block(blocks, pair);
        NibbleLevels n;
        words_at<1>(b + 1, n.words);
        n.levels = kLevels;
        n.scale = formats::half_e8m0_to_f32(get<uint8_t>(b));
        return n;
    }
};

template <>
struct Format<TSR_TYPE_IQ4_NL> : sub_block_bits::FormatOf<formats::BlockIq4Nl> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        constexpr Table16 kTable = table16(formats::kIq4Values);
        const char* b = block(blocks, pair);
        uint32_t w[4];
        words_at<2>(b + 2, w);
        SubBlock p;
        look_up_half(kTable, w, odd, p.codes);
        p.scale = half_at(b);
        p.offset = 0;
        return p;
    }
    SIMT_DEVICE static NibbleLevels nibbles_at(const char* blocks, unsigned pair, float) {
        using namespace sub_block_bits;
        constexpr Table16 kLevels = sum_table(formats::kIq4Values);
        static_assert(is_sum_table(kLevels, formats::kIq4Values, 0));
        const char* b = block(blocks, pair);
        NibbleLevels n;
        words_at<2>(b + 2, n.words);
        n.levels = kLevels;
        n.scale = half_at(b);
        return n;
    }
};

template <>
struct Format<TSR_TYPE_IQ4_XS> : sub_block_bits::FormatOf<formats::BlockIq4Xs> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        constexpr Table16 kTable = table16(formats::kIq4Values);
        const char* b = block(blocks, pair);
        const unsigned group = pair % 8;
        uint32_t w[4], head[2];  // d and scales_h, scales_l
        words_at<8>(b, head);
        words_at<8>(b + 8 + 16 * group, w);
        SubBlock p;
        look_up_half(kTable, w, odd, p.codes);
        p.scale = scale_of(head, group);
        p.offset = 0;
        return p;
    }
    SIMT_DEVICE static NibbleLevels nibbles_at(const char* blocks, unsigned pair, float) {
        using namespace sub_block_bits;
        constexpr Table16 kLevels = sum_table(formats::kIq4Values);
        static_assert(is_sum_table(kLevels, formats::kIq4Values, 0));
        const char* b = block(blocks, pair);
        NibbleLevels n;
        const unsigned group = pair % 8;
        uint32_t head[2];
        words_at<8>(b, head);
        words_at<8>(b + 8 + 16 * group, n.words);
        n.levels = kLevels;
        n.scale = scale_of(head, group);
        return n;
    }

  private:
    SIMT_DEVICE static float scale_of(const uint32_t (&head)[2], unsigned group) {
        const uint32_t scale = (head[1] >> 4 * group & 15) | (head[0] >> (16 + 2 * group) & 3) << 4;
        return simt::unpack_low<simt::half_t>(head[0]) * static_cast<float>(static_cast<int>(scale) - 32);
    }
};

template <>
struct Format<TSR_TYPE_Q8_K_F16> : sub_block_bits::FormatOf<formats::BlockQ8KF16> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        SubBlock p;
        words_at<2>(b + 2 + 16 * (2 * (pair % 8) + odd), p.codes);
        p.scale = half_at(b);
        p.offset = 0;
        return p;
    }
};

// Blocks of int8 alone, under the scale of a row.
template <class Block>
struct BytesOfRow : sub_block_bits::FormatOf<Block> {
    using Base = sub_block_bits::FormatOf<Block>;

    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        SubBlock p;
        Base::template words_at<16>(Base::block(blocks, pair) + 16 * odd, p.codes);
        p.scale = row_scale;
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_Q8_ROW> : BytesOfRow<formats::BlockQ8Row> {};
template <>
struct Format<TSR_TYPE_Q8_KV> : BytesOfRow<formats::BlockQ8KV> {};

}  // namespace tessera::cuda_kernels
