// Rows that files hold interleaved, four, eight or sixteen neighbours at a time (TSR_INTERLEAVED_TYPES), back to rows
// of their own. Exact: the bytes that the same rows have in a file of the plain type.
//
// A group of R rows is R row prefixes, then blocks of R rows. In such a block four neighbouring elements of a row lie
// in four neighbouring bytes, so everything here moves four codes at a time: "step" s of a block of 32 is its elements
// 4 s .. 4 s + 3, and R4 formats keep steps 0 1 2 3, 4 5 6 7 in the order 0 4 1 5 with 2 6 3 7 in the high nibbles.
// Source: what ik_llama.cpp's own code makes of such rows, recorded in tests/formats.
#pragma once

#include <tessera/formats/formats.hpp>
#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {
namespace interleaved_detail {

using Bytes = const uint8_t*;

inline uint32_t four(Bytes p) noexcept {
    uint32_t value;
    memcpy(&value, p, 4);
    return value;
}
inline void put_four(void* p, uint32_t value) noexcept {
    memcpy(p, &value, 4);
}
// Adds bits to four bytes.
inline void join_four(uint8_t* p, uint32_t bits) noexcept {
    put_four(p, four(p) | bits);
}
inline uint16_t two(Bytes p) noexcept {
    uint16_t value;
    memcpy(&value, p, 2);
    return value;
}

// Bits of four codes.
inline constexpr uint32_t kOneBit = 0x01010101, kTwoBits = 0x03030303, kFourBits = 0x0F0F0F0F;

// ---- where a plain block keeps step `s` of block `b` of 32; the block is zero before ----

// Elements j and j + 16 in the nibbles of byte j.
inline void put_nibbles(uint8_t* qs, int s, uint32_t codes) noexcept {
    join_four(qs + 4 * (s % 4), codes << (4 * (s / 4)));
}
// Blocks 2 i and 2 i + 1 in the nibbles of 32 bytes.
inline void put_wide_nibbles(uint8_t* qs, int b, int s, uint32_t codes) noexcept {
    join_four(qs + 32 * (b / 2) + 4 * s, codes << (4 * (b % 2)));
}
inline void put_two_bits(uint8_t* qs, int b, int s, uint32_t codes) noexcept {
    join_four(qs + 32 * (b / 4) + 4 * s, codes << (2 * (b % 4)));
}
inline void put_bit(uint8_t* qh, int b, int s, uint32_t codes) noexcept {
    join_four(qh + 4 * s, codes << b);
}

// ---- where an interleaved block keeps step `s` of row `row` of its four; `qs` is of one block of 32 ----

inline uint32_t r4_nibbles(Bytes qs, int row, int s) noexcept {
    return four(qs + 16 * (2 * (s % 2) + s / 4) + 4 * row) >> (4 * (s / 2 % 2)) & kFourBits;
}
inline uint32_t r4_two_bits(Bytes qs, int row, int s) noexcept {
    return four(qs + 16 * (s / 4) + 4 * row) >> (2 * (s % 4)) & kTwoBits;
}
// One bit a step, in the order of the steps.
inline uint32_t r4_bit(Bytes qh, int row, int s) noexcept {
    return four(qh + 4 * row) >> s & kOneBit;
}
// One bit a step, in the order of the nibbles.
inline uint32_t r4_nibble_bit(Bytes qh, int row, int s) noexcept {
    return four(qh + 4 * row) >> (2 * (2 * (s % 2) + s / 4) + s / 2 % 2) & kOneBit;
}
// `kRows` rows, step after step.
template <int kRows>
inline uint32_t step_of(Bytes qs, int row, int step) noexcept {
    return four(qs + 4 * kRows * step + 4 * row);
}

// Number `i` of those of four bits, the first 32 in the low nibbles; of two bits, 16 at a time.
inline int four_of(Bytes scales, int i) noexcept {
    return scales[i % 32] >> (4 * (i / 32)) & 15;
}
inline int two_of(Bytes scales, int i) noexcept {
    return scales[i % 16] >> (2 * (i / 16)) & 3;
}

template <class F>
inline void each_step(F&& f) noexcept {
    for (int b = 0; b < 8; ++b) {
        for (int s = 0; s < 8; ++s) f(b, s);
    }
}

// `extra` of iq2_k to iq5_k: bit h of a half; interleaved, a byte a row for even halves and one for odd ones.
inline uint16_t extra_of(Bytes extra, int row) noexcept {
    uint16_t bits = 0;
    for (int h = 0; h < 16; ++h) bits |= static_cast<uint16_t>((extra[row + 4 * (h % 2)] >> (h / 2) & 1) << h);
    return bits;
}
// Scales of six bits a half, and where q3_K, iq4_k and iq5_k put them.
inline int six_of(Bytes high, Bytes low, int row, int h) noexcept {
    const int i = 4 * h + row;
    return four_of(low, i) | two_of(high, i) << 4;
}
template <class Block>
inline void put_iq4k_scales(Bytes high, Bytes low, int row, Block& block) noexcept {
    for (int h = 0; h < 16; ++h) {
        const int scale = six_of(high, low, row, h);
        block.scales_l[h / 2] |= static_cast<uint8_t>((scale & 15) << (4 * (h % 2)));
        block.scales_h[h / 4] |= static_cast<uint8_t>((scale >> 4) << (2 * (h % 4)));
    }
}
// Scales and minima of q4_K and q5_K (k_scale_min).
inline void put_scale_min(Bytes high, Bytes low, int row, uint8_t* scales) noexcept {
    for (int b = 0; b < 8; ++b) {
        const int i = 4 * b + row, top = high[i % 16] >> (4 * (i / 16));
        const int scale = (low[i] & 15) | (top & 3) << 4, min = low[i] >> 4 | (top >> 2 & 3) << 4;
        if (b < 4) {
            scales[b] |= static_cast<uint8_t>(scale);
            scales[b + 4] |= static_cast<uint8_t>(min);
        } else {
            scales[b + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
            scales[b - 4] |= static_cast<uint8_t>(scale >> 4 << 6);
            scales[b] |= static_cast<uint8_t>(min >> 4 << 6);
        }
    }
}
// A byte of signs that belongs to eight elements with an even number of minuses: the bits are Gray-coded, the lowest,
// which that leaves free, holds a bit of the scale.
inline uint32_t seven_signs(uint32_t byte) noexcept {
    return ((byte & 254) ^ (byte & 254) >> 1) & 127;
}
inline uint32_t signs_and_scale(Bytes value) noexcept {
    uint32_t bits = 0;
    for (int g = 0; g < 4; ++g) bits |= seven_signs(value[g]) << (7 * g) | (value[g] & 1u) << (28 + g);
    return bits;
}

}  // namespace interleaved_detail

// Row `row` of one block of kRows rows. `group`: the rows' blocks together; `block` is zero before.
template <tsr_type kType>
struct Interleaved;

#define TSR_INTERLEAVED(type, block_type, rows)                                 \
    template <>                                                                 \
    struct Interleaved<type> {                                                  \
        using Block = block_type;                                               \
        static constexpr int kRows = rows;                                      \
        static void take(const uint8_t* group, int row, Block& block) noexcept; \
    };                                                                          \
    inline void Interleaved<type>::take(const uint8_t* group, int row, Block& block) noexcept

TSR_INTERLEAVED(TSR_TYPE_Q4_0_R8, BlockQ4_0, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 4; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 16, row, i));
}
TSR_INTERLEAVED(TSR_TYPE_MXFP4_R8, BlockMxfp4, 8) {
    using namespace interleaved_detail;
    block.e = group[row];
    for (int i = 0; i < 4; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 8, row, i));
}
TSR_INTERLEAVED(TSR_TYPE_Q8_0_R8, BlockQ8_0, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) put_four(block.qs + 4 * s, step_of<8>(group + 16, row, s));
}
TSR_INTERLEAVED(TSR_TYPE_Q8_KV_R8, BlockQ8Row, 8) {
    using namespace interleaved_detail;
    for (int s = 0; s < 8; ++s) put_four(block.qs + 4 * s, step_of<8>(group, row, s));
}
TSR_INTERLEAVED(TSR_TYPE_Q8_K_R8, BlockQ8KF16, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 64; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 16, row, i));
}
// Codes lie 128 higher.
TSR_INTERLEAVED(TSR_TYPE_Q8_K_R16, BlockQ8KF16, 16) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 64; ++i) put_four(block.qs + 4 * i, step_of<16>(group + 32, row, i) ^ 0x80808080);
}
TSR_INTERLEAVED(TSR_TYPE_IQ4_NL_R4, BlockIq4Nl, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) put_nibbles(block.qs, s, r4_nibbles(group + 8, row, s));
}
TSR_INTERLEAVED(TSR_TYPE_Q5_0_R4, BlockQ5_0, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) {
        put_nibbles(block.qs, s, r4_nibbles(group + 24, row, s));
        // Bit of four codes: one byte of four, to one bit of four.
        const uint32_t bits = four(group + 8 + 4 * row) >> (2 * (s % 2) + s / 4 + 4 * (s / 2 % 2)) & kOneBit;
        block.qh[s / 2] |= static_cast<uint8_t>(((bits | bits >> 7 | bits >> 14 | bits >> 21) & 15) << (4 * (s % 2)));
    }
}
TSR_INTERLEAVED(TSR_TYPE_Q6_0_R4, BlockQ6_0, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) {
        put_nibbles(block.qs, s, r4_nibbles(group + 40, row, s));
        const uint32_t high = four(group + 8 + 16 * (s / 4) + 4 * row) >> (2 * (s % 2) + 4 * (s / 2 % 2)) & kTwoBits;
        join_four(block.qh + 4 * (s % 2), high << (4 * (s / 2 % 2) + 2 * (s / 4)));
    }
}
TSR_INTERLEAVED(TSR_TYPE_Q2_K_R4, BlockQ2K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    for (int h = 0; h < 16; ++h) block.scales[h] = group[16 + 4 * h + row];
    each_step([&](int b, int s) { put_two_bits(block.qs, b, s, r4_two_bits(group + 80 + 32 * b, row, s)); });
}
TSR_INTERLEAVED(TSR_TYPE_Q3_K_R4, BlockQ3K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int h = 0; h < 16; ++h) {
        const int scale = six_of(group + 8, group + 24, row, h);
        block.scales[h % 8] |= static_cast<uint8_t>((scale & 15) << (4 * (h / 8)));
        block.scales[8 + h % 4] |= static_cast<uint8_t>((scale >> 4) << (2 * (h / 4)));
    }
    each_step([&](int b, int s) {
        put_two_bits(block.qs, b, s, r4_two_bits(group + 184 + 32 * b, row, s));
        put_bit(block.hmask, b, s, r4_bit(group + 56 + 16 * b, row, s));
    });
}
TSR_INTERLEAVED(TSR_TYPE_Q4_K_R4, BlockQ4K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    put_scale_min(group + 16, group + 32, row, block.scales);
    each_step([&](int b, int s) { put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 64 + 64 * b, row, s)); });
}
TSR_INTERLEAVED(TSR_TYPE_Q5_K_R4, BlockQ5K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    put_scale_min(group + 16, group + 32, row, block.scales);
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 192 + 64 * b, row, s));
        const int bit = 4 * (s / 4) + 2 * (s % 2) + s / 2 % 2;
        put_bit(block.qh, b, s, four(group + 64 + 16 * b + 4 * row) >> bit & kOneBit);
    });
}
TSR_INTERLEAVED(TSR_TYPE_Q6_K_R4, BlockQ6K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int h = 0; h < 16; ++h) block.scales[h] = static_cast<int8_t>(group[8 + 4 * h + row]);
    each_step([&](int b, int s) {
        const uint32_t low = r4_nibbles(group + 328 + 64 * b, row, s);
        join_four(block.ql + 64 * (b / 4) + 32 * (b % 2) + 4 * s, low << (4 * (b % 4 / 2)));
        const int shift = 4 * (s % 2) + 2 * (s / 2 % 2);
        put_two_bits(block.qh, b, s, four(group + 72 + 32 * b + 16 * (s / 4) + 4 * row) >> shift & kTwoBits);
    });
}
TSR_INTERLEAVED(TSR_TYPE_IQ4_XS_R8, BlockIq4Xs, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        const int i = 8 * b + row;
        block.scales_l[b / 2] |= static_cast<uint8_t>(four_of(group + 32, i) << (4 * (b % 2)));
        block.scales_h |= static_cast<uint16_t>(two_of(group + 16, i) << (2 * b));
    }
    each_step([&](int b, int s) {
        const uint32_t codes = four(group + 64 + 128 * b + 32 * (s / 2) + 4 * row) >> (4 * (s % 2)) & kFourBits;
        put_nibbles(block.qs + 16 * b, s, codes);
    });
}
TSR_INTERLEAVED(TSR_TYPE_IQ4_KS_R4, BlockIq4Ks, 4) {
    using namespace interleaved_detail;
    for (int b = 0; b < 8; ++b) block.scales[b] = group[4 * b + row];
    each_step([&](int b, int s) { put_nibbles(block.qs + 16 * b, s, r4_nibbles(group + 32 + 64 * b, row, s)); });
}
TSR_INTERLEAVED(TSR_TYPE_IQ5_KS_R4, BlockIq5Ks, 4) {
    using namespace interleaved_detail;
    for (int b = 0; b < 8; ++b) block.scales[b] = group[4 * b + row];
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 32 + 64 * b, row, s));
        put_bit(block.qh, b, s, r4_nibble_bit(group + 544 + 16 * b, row, s));
    });
}
TSR_INTERLEAVED(TSR_TYPE_IQ2_K_R4, BlockIq2K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    for (int h = 0; h < 16; ++h) {
        block.scales[h / 2] |= static_cast<uint8_t>(four_of(group + 16, 4 * h + row) << (4 * (h % 2)));
    }
    each_step([&](int b, int s) { put_two_bits(block.qs, b, s, r4_two_bits(group + 48 + 32 * b, row, s)); });
}
TSR_INTERLEAVED(TSR_TYPE_IQ3_K_R4, BlockIq3K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    for (int h = 0; h < 16; ++h) {
        const int i = 4 * h + row;
        block.scales_l[h / 2] |= static_cast<uint8_t>(four_of(group + 24, i) << (4 * (h % 2)));
        block.scales_h |= static_cast<uint16_t>((group[16 + i % 8] >> (i / 8) & 1) << h);
    }
    each_step([&](int b, int s) {
        put_two_bits(block.qs, b, s, r4_two_bits(group + 56 + 32 * b, row, s));
        put_bit(block.qh, b, s, r4_bit(group + 312 + 16 * b, row, s));
    });
}
TSR_INTERLEAVED(TSR_TYPE_IQ4_K_R4, BlockIq4K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    put_iq4k_scales(group + 16, group + 32, row, block);
    each_step([&](int b, int s) { put_nibbles(block.qs + 16 * b, s, r4_nibbles(group + 64 + 64 * b, row, s)); });
}
TSR_INTERLEAVED(TSR_TYPE_IQ5_K_R4, BlockIq5K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    put_iq4k_scales(group + 16, group + 32, row, block);
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 64 + 64 * b, row, s));
        put_bit(block.qh, b, s, r4_nibble_bit(group + 576 + 16 * b, row, s));
    });
}
TSR_INTERLEAVED(TSR_TYPE_IQ2_XXS_R4, BlockIq2Xxs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        put_four(block.qs + 8 * b, four(group + 136 + 16 * b + 4 * row));
        put_four(block.qs + 8 * b + 4, signs_and_scale(group + 8 + 16 * b + 4 * row));
    }
}
TSR_INTERLEAVED(TSR_TYPE_IQ3_XXS_R4, BlockIq3Xxs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        memcpy(block.qs + 8 * b, group + 136 + 32 * b + 8 * row, 8);
        put_four(block.fields + 4 * b, signs_and_scale(group + 8 + 16 * b + 4 * row));
    }
}
TSR_INTERLEAVED(TSR_TYPE_IQ2_XS_R4, BlockIq2Xs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        for (int g = 0; g < 4; ++g) {
            const uint32_t entry = two(group + 8 + 2 * (16 * b + 4 * row + g));
            block.qs[4 * b + g] = static_cast<uint16_t>((entry & 511) | seven_signs(entry >> 9 << 1) << 9);
        }
        block.scales[b] = group[264 + 4 * b + row];
    }
}
TSR_INTERLEAVED(TSR_TYPE_IQ2_S_R4, BlockIq2S, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        put_four(block.qs + 4 * b, four(group + 8 + 16 * b + 4 * row));
        block.qh[b] = group[136 + 4 * b + row];
        put_four(block.signs + 4 * b, four(group + 168 + 16 * b + 4 * row));
        block.scales[b] = group[296 + 4 * b + row];
    }
}
TSR_INTERLEAVED(TSR_TYPE_IQ3_S_R4, BlockIq3S, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        for (int i = 0; i < 8; ++i) block.qs[8 * b + i] = group[8 + 32 * b + 8 * (i % 4) + 4 * (i / 4) + row];
        block.qh[b] = group[264 + 4 * b + row];
        // Bit s of byte i is of element 4 s + i.
        const uint32_t signs = four(group + 296 + 16 * b + 4 * row);
        for (int s = 0; s < 8; ++s) {
            const uint32_t bits = signs >> s & kOneBit;
            block.signs[4 * b + s / 2] |=
                static_cast<uint8_t>(((bits | bits >> 7 | bits >> 14 | bits >> 21) & 15) << (4 * (s % 2)));
        }
        const int i = 4 * b + row, scale = group[424 + i % 16] >> (4 * (i / 16)) & 15;
        block.scales[b / 2] |= static_cast<uint8_t>(scale << (4 * (b % 2)));
    }
}
TSR_INTERLEAVED(TSR_TYPE_IQ1_S_R4, BlockIq1SRow, 4) {
    for (int g = 0; g < 4; ++g) block.qs[g] = group[4 * g + row];
    block.qh = interleaved_detail::two(group + 16 + 2 * row);
}
TSR_INTERLEAVED(TSR_TYPE_IQ1_M_R4, BlockIq1MRow, 4) {
    for (int g = 0; g < 4; ++g) block.qs[g] = group[4 * g + row];
    for (int i = 0; i < 2; ++i) block.qh[i] = group[16 + 4 * i + row];
    block.scales = group[24 + row];
}
// Two elements a time.
struct Bf16Pair {
    static constexpr int kElements = 2;
    uint16_t pair[2];
};
TSR_INTERLEAVED(TSR_TYPE_BF16_R16, Bf16Pair, 16) {
    memcpy(block.pair, group + 4 * row, 4);
}
#undef TSR_INTERLEAVED

// Calls visit.template operator()<Interleaved<type>>(rows_type) and returns true; false for a type that is not
// interleaved.
template <class Visitor>
inline bool visit_interleaved(tsr_type type, Visitor&& visit) {
    switch (type) {
#define TSR_CASE(id, number, name, rows_type, rows)                                  \
    case TSR_TYPE_##id:                                                              \
        static_assert(Interleaved<TSR_TYPE_##id>::kRows == rows);                    \
        visit.template operator()<Interleaved<TSR_TYPE_##id>>(TSR_TYPE_##rows_type); \
        return true;
        TSR_INTERLEAVED_TYPES(TSR_CASE)
#undef TSR_CASE
        default:
            return false;
    }
}

// `groups` groups of interleaved rows of `elements` (whole blocks) to plain rows one after another. False for a type
// that is not interleaved. Buffers do not overlap; any alignment; any thread.
inline bool separate_rows(tsr_type type, size_t elements, size_t groups, const void* interleaved, void* rows) noexcept {
    return visit_interleaved(type, [&]<class Kind>(tsr_type rows_type) {
        using Block = typename Kind::Block;
        const size_t prefix = format_size(rows_type).prefix, row_bytes = format_bytes(rows_type, elements);
        const auto* from = static_cast<const uint8_t*>(interleaved);
        auto* to = static_cast<uint8_t*>(rows);
        for (size_t g = 0; g < groups; ++g, from += Kind::kRows * row_bytes, to += Kind::kRows * row_bytes) {
            for (int row = 0; row < Kind::kRows; ++row) {
                const auto at = static_cast<size_t>(row);
                uint8_t* out = to + at * row_bytes;
                memcpy(out, from + at * prefix, prefix);
                out += prefix;
                const uint8_t* in = from + Kind::kRows * prefix;
                for (size_t e = 0; e < elements; e += Block::kElements) {
                    Block block{};
                    Kind::take(in, row, block);
                    memcpy(out, &block, sizeof block);
                    in += Kind::kRows * sizeof block, out += sizeof block;
                }
            }
        }
    });
}

}  // namespace tessera::formats
