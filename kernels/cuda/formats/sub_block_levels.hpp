// Sub-blocks of the formats with uneven levels that ik_llama.cpp added (tessera/formats/levels.hpp); see sub_block.hpp.
// "half" h is elements 16 h .. 16 h + 15 of a block of 256.
#pragma once

#include "sub_block_any.hpp"
#include "sub_block_bits.hpp"

#include <tessera/formats/block_list.hpp>

namespace tessera::cuda_kernels {
namespace sub_block_bits {

// Levels of one set or, shifted, of the other.
template <int kCount>
struct Levels {
    uint32_t words[kCount / 4];
};
template <int kCount>
constexpr Levels<kCount> levels(const int8_t (&values)[kCount], int shift) {
    Levels<kCount> all{};
    for (int i = 0; i < kCount / 4; ++i)
        all.words[i] = four_values(values[4 * i] + shift, values[4 * i + 1] + shift, values[4 * i + 2] + shift,
                                   values[4 * i + 3] + shift);
    return all;
}
template <int kCount>
SIMT_DEVICE Levels<kCount> chosen(const Levels<kCount>& plain, const Levels<kCount>& shifted, bool is_shifted) {
    Levels<kCount> all;
    SIMT_UNROLL
    for (int i = 0; i < kCount / 4; ++i) all.words[i] = is_shifted ? shifted.words[i] : plain.words[i];
    return all;
}

// Codes of half `h` where 128 elements lie in 32 bytes, two bits each.
template <int kAlignment>
SIMT_DEVICE void two_bit_codes(const char* qs, int h, uint32_t (&codes)[4]) {
    get_words<kAlignment>(qs + 32 * (h / 8) + 16 * (h % 2), codes);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = bit_pairs(codes[i], 2 * (h / 2 % 4));
}
// Bit of the eight blocks of 32 in 32 bytes.
template <int kAlignment>
SIMT_DEVICE void one_bit_codes(const char* qh, int h, uint32_t (&codes)[4]) {
    get_words<kAlignment>(qh + 16 * (h % 2), codes);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = codes[i] >> (h / 2) & 0x01010101u;
}
// Blocks of 32 in the low and high nibbles of 32 bytes.
template <int kAlignment>
SIMT_DEVICE void wide_nibble_codes(const char* qs, int h, uint32_t (&codes)[4]) {
    get_words<kAlignment>(qs + 32 * (h / 4) + 16 * (h % 2), codes);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = nibbles(codes[i], 4 * (h / 2 % 2));
}

template <int kAlignment>
SIMT_DEVICE void two_bit_levels(const char* qs, int h, bool shifted, uint32_t (&codes)[4]) {
    constexpr Levels<4> kPlain = levels(formats::kIq2kValues, 0);
    constexpr Levels<4> kShifted = levels(formats::kIq2kValues, formats::kIq2kShift);
    const uint32_t values = shifted ? kShifted.words[0] : kPlain.words[0];
    two_bit_codes<kAlignment>(qs, h, codes);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = choose8(values, 0, bytes_to_nibbles(codes[i]));
}
template <int kAlignment>
SIMT_DEVICE void three_bit_levels(const char* qs, const char* qh, int h, bool shifted, uint32_t (&codes)[4]) {
    constexpr Levels<8> kPlain = levels(formats::kIq3kValues, 0);
    constexpr Levels<8> kShifted = levels(formats::kIq3kValues, formats::kIq3kShift);
    const Levels<8> values = chosen(kPlain, kShifted, shifted);
    uint32_t high[4];
    two_bit_codes<kAlignment>(qs, h, codes);
    one_bit_codes<kAlignment>(qh, h, high);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i)
        codes[i] = choose8(values.words[0], values.words[1], bytes_to_nibbles(codes[i] | high[i] << 2));
}
// Halves in the low and high nibbles of 16 bytes.
template <int kAlignment>
SIMT_DEVICE void four_bit_levels(const char* qs, int h, bool shifted, uint32_t (&codes)[4]) {
    constexpr Table16 kPlain = table16(formats::kIq4Values),
                      kShifted = table16(formats::kIq4Values, formats::kIq4kShift);
    Table16 values;
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) values.words[i] = shifted ? kShifted.words[i] : kPlain.words[i];
    get_words<kAlignment>(qs + 16 * (h / 2), codes);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) codes[i] = choose16(values, bytes_to_nibbles(nibbles(codes[i], 4 * (h % 2))));
}
template <int kAlignment>
SIMT_DEVICE void five_bit_levels(const char* qs, const char* qh, int h, bool shifted, uint32_t (&codes)[4]) {
    constexpr Levels<32> kPlain = levels(formats::kIq5kValues, 0);
    constexpr Levels<32> kShifted = levels(formats::kIq5kValues, formats::kIq5kShift);
    const Levels<32> values = chosen(kPlain, kShifted, shifted);
    const Table16 first{{values.words[0], values.words[1], values.words[2], values.words[3]}};
    const Table16 second{{values.words[4], values.words[5], values.words[6], values.words[7]}};
    uint32_t high[4];
    wide_nibble_codes<kAlignment>(qs, h, codes);
    one_bit_codes<kAlignment>(qh, h, high);
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        const uint32_t which = bytes_to_nibbles(codes[i]);
        codes[i] = select_bytes(choose16(first, which), choose16(second, which), high[i]);
    }
}

// Six bits of scale of iq4_k and iq5_k, as a signed number.
SIMT_DEVICE int six_bit_scale(uint32_t scales_h, const char* scales_l, int h) {
    const uint32_t low = byte_at(scales_l + h / 2) >> (4 * (h % 2)) & 15, high = scales_h >> (2 * h) & 3;
    return static_cast<int>(low | high << 4) - 32;
}
// Of iq4_ks and iq5_ks.
SIMT_DEVICE float byte_scale(uint32_t scale) {
    return static_cast<float>(static_cast<int>(scale & 254) - 127);
}

}  // namespace sub_block_bits

template <>
struct Format<TSR_TYPE_IQ2_K> : sub_block_bits::FormatOf<formats::BlockIq2K> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b); }
    SIMT_DEVICE static int integer_scale(const char* b, int h) {
        return static_cast<int>(sub_block_bits::byte_at(b + 4 + h / 2) >> (4 * (h % 2)) & 15) - 8;
    }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        SubBlock p;
        two_bit_levels<kAlignment>(b + 12, h, two_at(b + 2) >> h & 1, p.codes);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ2_KS> : sub_block_bits::FormatOf<formats::BlockIq2Ks> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd, j = h / 2;
        const uint32_t extra = two_at(b);
        SubBlock p;
        two_bit_levels<kAlignment>(b + 6, h, extra >> j & 1, p.codes);
        const uint32_t scale = (byte_at(b + 2 + j / 2) >> (4 * (j % 2)) & 15) | (extra >> (8 + j) & 1) << 4;
        p.scale = row_scale * static_cast<float>(static_cast<int>(scale) - 16);
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ3_K> : sub_block_bits::FormatOf<formats::BlockIq3K> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b); }
    SIMT_DEVICE static int integer_scale(const char* b, int h) {
        using namespace sub_block_bits;
        const int size = static_cast<int>(2 * (byte_at(b + 6 + h / 2) >> (4 * (h % 2)) & 15)) + 1;
        // Without a predicate for each of eight signs, of which products of many rows had too many at once.
        const int minus = -static_cast<int>(two_at(b + 4) >> h & 1);
        return (size ^ minus) - minus;
    }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        SubBlock p;
        three_bit_levels<kAlignment>(b + 14, b + 78, h, two_at(b + 2) >> h & 1, p.codes);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ3_KS> : sub_block_bits::FormatOf<formats::BlockIq3Ks> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd, j = h / 2;
        const uint32_t extra = two_at(b);
        SubBlock p;
        three_bit_levels<kAlignment>(b + 6, b + 70, h, extra >> (8 + j) & 1, p.codes);
        const uint32_t scale = (byte_at(b + 2 + j % 4) >> (4 * (j / 4)) & 15) | (extra >> j & 1) << 4;
        p.scale = row_scale * static_cast<float>(static_cast<int>(scale) - 16);
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ4_K> : sub_block_bits::FormatOf<formats::BlockIq4K> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b); }
    SIMT_DEVICE static int integer_scale(const char* b, int h) {
        return sub_block_bits::six_bit_scale(sub_block_bits::get<uint32_t>(b + 4), b + 8, h);
    }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        SubBlock p;
        four_bit_levels<kAlignment>(b + 16, h, two_at(b + 2) >> h & 1, p.codes);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ4_KS> : sub_block_bits::FormatOf<formats::BlockIq4Ks> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t scale = byte_at(b + h / 2);
        SubBlock p;
        four_bit_levels<kAlignment>(b + 8, h, scale & 1, p.codes);
        p.scale = row_scale * byte_scale(scale);
        p.offset = 0;
        return p;
    }
    SIMT_DEVICE static NibbleLevels nibbles_at(const char* blocks, unsigned pair, float row_scale) {
        using namespace sub_block_bits;
        constexpr Table16 kPlain = sum_table(formats::kIq4Values);
        constexpr Table16 kShifted = sum_table(formats::kIq4Values, formats::kIq4kShift);
        static_assert(is_sum_table(kPlain, formats::kIq4Values, 0));
        static_assert(is_sum_table(kShifted, formats::kIq4Values, formats::kIq4kShift));
        const char* b = block(blocks, pair);
        const uint32_t scale = byte_at(b + pair % 8);
        NibbleLevels n;
        words_at<8>(b + 8 + 16 * (pair % 8), n.words);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) n.levels.words[i] = scale & 1 ? kShifted.words[i] : kPlain.words[i];
        n.scale = row_scale * byte_scale(scale);
        return n;
    }
};

template <>
struct Format<TSR_TYPE_IQ5_K> : sub_block_bits::FormatOf<formats::BlockIq5K> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b); }
    SIMT_DEVICE static int integer_scale(const char* b, int h) {
        return sub_block_bits::six_bit_scale(sub_block_bits::get<uint32_t>(b + 4), b + 8, h);
    }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        SubBlock p;
        five_bit_levels<kAlignment>(b + 16, b + 144, h, two_at(b + 2) >> h & 1, p.codes);
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

template <>
struct Format<TSR_TYPE_IQ5_KS> : sub_block_bits::FormatOf<formats::BlockIq5Ks> {
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float row_scale) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t scale = byte_at(b + h / 2);
        SubBlock p;
        five_bit_levels<kAlignment>(b + 8, b + 136, h, scale & 1, p.codes);
        p.scale = row_scale * byte_scale(scale);
        p.offset = 0;
        return p;
    }
};

// 64 levels: from a table in memory, since four tables of sixteen would take more operations than sixteen loads.
template <>
struct Format<TSR_TYPE_IQ6_K> : sub_block_bits::FormatOf<formats::BlockIq6K> {
    SIMT_DEVICE static float block_scale(const char* b) { return sub_block_bits::half_at(b); }
    SIMT_DEVICE static int integer_scale(const char* b, int h) { return sub_block_bits::get<int8_t>(b + 4 + h); }
    SIMT_DEVICE static SubBlock at(const char* blocks, unsigned pair, unsigned odd, float) {
        using namespace sub_block_bits;
        const char* b = block(blocks, pair);
        const int h = 2 * (pair % 8) + odd;
        const uint32_t shift = two_at(b + 2) >> h & 1 ? formats::kIq6kShift * 0x01010101u : 0;
        uint32_t low[4], high[4];
        wide_nibble_codes<kAlignment>(b + 20, h, low);
        two_bit_codes<kAlignment>(b + 148, h, high);
        SubBlock p;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const uint32_t codes = low[i] | high[i] << 4;
            const uint32_t values =
                four_values(formats::kIq6kValues[codes & 63], formats::kIq6kValues[codes >> 8 & 63],
                            formats::kIq6kValues[codes >> 16 & 63], formats::kIq6kValues[codes >> 24 & 63]);
            p.codes[i] = centred(centred(values) + shift);  // none of the sums is beyond int8
        }
        p.scale = block_scale(b) * static_cast<float>(integer_scale(b, h));
        p.offset = 0;
        return p;
    }
};

}  // namespace tessera::cuda_kernels
