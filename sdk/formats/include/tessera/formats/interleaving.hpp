// How formats say where a file's interleaved rows (interleaved.hpp) keep the bytes of their blocks.
//
// A group of R rows is R row prefixes, then blocks of R rows. In such a block four neighbouring elements of a row lie
// in four neighbouring bytes, so everything here moves four codes at a time: "step" s of a block of 32 is its elements
// 4 s .. 4 s + 3, and R4 formats keep steps 0 1 2 3, 4 5 6 7 in the order 0 4 1 5 with 2 6 3 7 in the high nibbles.
// Source: what ik_llama.cpp's own code makes of such rows, recorded in tests/formats.
#pragma once

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

}  // namespace tessera::formats
