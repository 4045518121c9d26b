// Blocks of the formats that ik_llama.cpp added to f32; see decode.hpp. Where a scale of a row is an f32, its product
// with a block's scale is rounded once, before it is multiplied with the levels.
#pragma once

#include <tessera/formats/blocks_ik.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {
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

inline void decode(const BlockIq2K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq2kValues, [&](int h) { return d * static_cast<float>((block.scales[h / 2] >> (4 * (h % 2)) & 15) - 8); },
        [&](int h) { return block.extra >> h & 1 ? kIq2kShift : 0; },
        [&](int h, int j) { return decode_detail::two_bits(block.qs, h, j); }, out);
}

inline void decode(const BlockIq2Ks& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    decode_detail::decode_levels(
        kIq2kValues, [&](int h) { return d * static_cast<float>(iq2ks_scale(block, h / 2)); },
        [&](int h) { return block.extra >> (h / 2) & 1 ? kIq2kShift : 0; },
        [&](int h, int j) { return decode_detail::two_bits(block.qs, h, j); }, out);
}

inline void decode(const BlockIq3K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq3kValues, [&](int h) { return d * static_cast<float>(iq3k_scale(block, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq3kShift : 0; },
        [&](int h, int j) { return decode_detail::three_bits(block.qs, block.qh, h, j); }, out);
}

inline void decode(const BlockIq3Ks& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    decode_detail::decode_levels(
        kIq3kValues, [&](int h) { return d * static_cast<float>(iq3ks_scale(block, h / 2)); },
        [&](int h) { return block.extra >> (8 + h / 2) & 1 ? kIq3kShift : 0; },
        [&](int h, int j) { return decode_detail::three_bits(block.qs, block.qh, h, j); }, out);
}

inline void decode(const BlockIq4K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq4Values, [&](int h) { return d * static_cast<float>(iq4k_scale(block.scales_l, block.scales_h, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq4kShift : 0; },
        [&](int h, int j) { return decode_detail::nibble(block.qs, h, j); }, out);
}

inline void decode(const BlockIq4Ks& block, float row_scale, float* out) noexcept {
    decode_detail::decode_levels(
        kIq4Values, [&](int h) { return row_scale * static_cast<float>(iq4ks_scale(block.scales[h / 2])); },
        [&](int h) { return block.scales[h / 2] & 1 ? kIq4kShift : 0; },
        [&](int h, int j) { return decode_detail::nibble(block.qs, h, j); }, out);
}

inline void decode(const BlockIq5K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq5kValues, [&](int h) { return d * static_cast<float>(iq4k_scale(block.scales_l, block.scales_h, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq5kShift : 0; },
        [&](int h, int j) { return decode_detail::five_bits(block.qs, block.qh, h, j); }, out);
}

inline void decode(const BlockIq5Ks& block, float row_scale, float* out) noexcept {
    decode_detail::decode_levels(
        kIq5kValues, [&](int h) { return row_scale * static_cast<float>(iq4ks_scale(block.scales[h / 2])); },
        [&](int h) { return block.scales[h / 2] & 1 ? kIq5kShift : 0; },
        [&](int h, int j) { return decode_detail::five_bits(block.qs, block.qh, h, j); }, out);
}

inline void decode(const BlockIq6K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq6kValues, [&](int h) { return d * static_cast<float>(block.scales[h]); },
        [&](int h) { return block.extra >> h & 1 ? kIq6kShift : 0; },
        [&](int h, int j) { return decode_detail::six_bits(block.qs, block.qh, h, j); }, out);
}

}  // namespace tessera::formats
