// Levels that codes choose from, of the formats that share them. Those of ik_llama.cpp have two sets, one shifted
// against the other, chosen for 16 or 32 elements by a bit of `extra` or of the scale.
#pragma once

#include <tessera/formats/block.hpp>

namespace tessera::formats {

// The 16 levels of iq4_nl and iq4_xs.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// The levels of mxfp4, doubled: e2m1 numbers of the OCP Microscaling specification 1.0.
inline constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

// The levels, and what the second set has more.
inline constexpr int8_t kIq2kValues[4] = {-31, -13, 1, 17};

inline constexpr int8_t kIq3kValues[8] = {-63, -40, -23, -10, 1, 13, 28, 47};

inline constexpr int8_t kIq5kValues[32] = {-126, -114, -103, -92, -83, -74, -65, -57, -50, -43, -36,
                                           -30,  -24,  -18,  -12, -6,  -1,  5,   11,  17,  23,  29,
                                           36,   43,   51,   59,  68,  77,  87,  97,  109, 121};

inline constexpr int8_t kIq6kValues[64] = {
    -127, -121, -115, -109, -104, -98, -93, -88, -84, -79, -74, -70, -66, -62, -58, -54, -51, -47, -44, -40, -37, -34,
    -31,  -28,  -25,  -22,  -19,  -16, -13, -11, -8,  -5,  -2,  0,   3,   6,   9,   12,  14,  17,  20,  23,  27,  30,
    33,   36,   40,   44,   47,   51,  55,  59,  63,  68,  72,  77,  82,  87,  92,  98,  103, 109, 115, 121};

inline constexpr int kIq2kShift = 5, kIq3kShift = 4, kIq4kShift = 4, kIq5kShift = 2, kIq6kShift = 1;

// Six bits of scale of half `h`, centred: -32 .. 31. For iq4_k and iq5_k.
inline int iq4k_scale(const uint8_t* scales_l, const uint8_t* scales_h, int h) noexcept {
    const int low = scales_l[h / 2] >> (4 * (h % 2)) & 15;
    const int high = scales_h[h / 4] >> (2 * (h % 4)) & 3;
    return (low | high << 4) - 32;
}

// iq4_ks and iq5_ks.
inline int iq4ks_scale(uint8_t scale) noexcept {
    return (scale & 254) - 127;
}

namespace decode_detail {

// Codes of half `h`, element `j` (0..15), in the four arrangements.
inline int two_bits(const uint8_t* qs, int h, int j) noexcept {
    return qs[32 * (h / 8) + 16 * (h % 2) + j] >> (2 * (h / 2 % 4)) & 3;
}
inline int three_bits(const uint8_t* qs, const uint8_t* qh, int h, int j) noexcept {
    return two_bits(qs, h, j) | (qh[16 * (h % 2) + j] >> (h / 2) & 1) << 2;
}
// Halves 0 and 1 in the low and high nibbles of 16 bytes.
inline int nibble(const uint8_t* qs, int h, int j) noexcept {
    return qs[16 * (h / 2) + j] >> (4 * (h % 2)) & 15;
}
// Blocks of 32 in the low and high nibbles of 32 bytes.
inline int wide_nibble(const uint8_t* qs, int h, int j) noexcept {
    return qs[32 * (h / 4) + 16 * (h % 2) + j] >> (4 * (h / 2 % 2)) & 15;
}
inline int five_bits(const uint8_t* qs, const uint8_t* qh, int h, int j) noexcept {
    return wide_nibble(qs, h, j) | (qh[16 * (h % 2) + j] >> (h / 2) & 1) << 4;
}
inline int six_bits(const uint8_t* qs, const uint8_t* qh, int h, int j) noexcept {
    return wide_nibble(qs, h, j) | (qh[32 * (h / 8) + 16 * (h % 2) + j] >> (2 * (h / 2 % 4)) & 3) << 4;
}
// One super-block of levels: per half a scale, what is added to the levels, and the codes.
template <class ScaleOf, class ShiftOf, class CodeOf>
inline void decode_levels(const int8_t* values, ScaleOf&& scale_of, ShiftOf&& shift_of, CodeOf&& code_of,
                          float* out) noexcept {
    for (int h = 0; h < 16; ++h) {
        const float scale = scale_of(h);
        const int shift = shift_of(h);
        for (int j = 0; j < 16; ++j) *out++ = scale * static_cast<float>(values[code_of(h, j)] + shift);
    }
}

}  // namespace decode_detail

}  // namespace tessera::formats
