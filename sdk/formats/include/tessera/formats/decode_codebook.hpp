// Blocks of iq1, iq2 and iq3 to f32; see decode.hpp.
#pragma once

#include <tessera/formats/blocks_codebook.hpp>
#include <tessera/formats/codebooks.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {
namespace decode_detail {

// Eight elements of an entry of 2-bit codes with these signs.
inline void signed_group(float scale, uint16_t entry, uint8_t signs, float* out) noexcept {
    for (int j = 0; j < 8; ++j) {
        const int value = kIq2Values[entry >> (2 * j) & 3];
        out[j] = scale * static_cast<float>(signs >> j & 1 ? -value : value);
    }
}

// Eight elements of two entries of 3-bit codes.
template <class ValueOf>
inline void signed_pair(float scale, uint16_t first, uint16_t second, uint8_t signs, ValueOf&& value_of,
                        float* out) noexcept {
    for (int j = 0; j < 8; ++j) {
        const int value = value_of((j < 4 ? first : second) >> (3 * (j % 4)) & 7);
        out[j] = scale * static_cast<float>(signs >> j & 1 ? -value : value);
    }
}

// Eight elements of an entry of kIq1Grid, shifted up by 1/8 or down.
inline void shifted_group(float scale, uint16_t entry, bool down, float* out) noexcept {
    for (int j = 0; j < 8; ++j) {
        out[j] = scale * (static_cast<float>((entry >> (2 * j) & 3) - 1) + (down ? -0.125f : 0.125f));
    }
}

}  // namespace decode_detail

inline void decode(const BlockIq2Xxs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int b = 0; b < 8; ++b) {
        const uint32_t field = iq2xxs_field(block, b);
        const float scale = d * (0.5f + static_cast<float>(field >> 28)) * 0.25f;
        for (int g = 0; g < 4; ++g, out += 8) {
            decode_detail::signed_group(scale, kIq2XxsGrid[block.qs[8 * b + g]], even_signs(field >> (7 * g)), out);
        }
    }
}

inline void decode(const BlockIq2Xs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const float scale = d * (0.5f + static_cast<float>(block.scales[g / 4] >> (4 * (g / 2 % 2)) & 15)) * 0.25f;
        decode_detail::signed_group(scale, kIq2XsGrid[block.qs[g] & 511], even_signs(block.qs[g] >> 9), out);
    }
}

inline void decode(const BlockIq2S& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const float scale = d * (0.5f + static_cast<float>(block.scales[g / 4] >> (4 * (g / 2 % 2)) & 15)) * 0.25f;
        decode_detail::signed_group(scale, kIq2SGrid[iq2s_entry(block, g)], block.signs[g], out);
    }
}

inline void decode(const BlockIq3Xxs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int b = 0; b < 8; ++b) {
        const uint32_t field = iq3xxs_field(block, b);
        const float scale = d * (0.5f + static_cast<float>(field >> 28)) * 0.5f;
        for (int g = 0; g < 4; ++g, out += 8) {
            const uint8_t* entries = block.qs + 8 * b + 2 * g;
            decode_detail::signed_pair(
                scale, kIq3XxsGrid[entries[0]], kIq3XxsGrid[entries[1]], even_signs(field >> (7 * g)),
                [](int code) { return kIq3XxsValues[code]; }, out);
        }
    }
}

inline void decode(const BlockIq3S& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const float scale = d * static_cast<float>(1 + 2 * (block.scales[g / 8] >> (4 * (g / 4 % 2)) & 15));
        decode_detail::signed_pair(
            scale, kIq3SGrid[iq3s_entry(block, 2 * g)], kIq3SGrid[iq3s_entry(block, 2 * g + 1)], block.signs[g],
            [](int code) { return 2 * code + 1; }, out);
    }
}

inline void decode(const BlockIq1S& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const uint16_t qh = block.qh[g / 4];
        decode_detail::shifted_group(d * static_cast<float>(2 * (qh >> 12 & 7) + 1),
                                     kIq1Grid[iq1s_entry(block.qs[g], qh, g % 4)], qh >> 15, out);
    }
}

inline void decode(const BlockIq1M& block, float* out) noexcept {
    const float d = f16_to_f32(iq1m_d(block));
    for (int g = 0; g < 32; ++g, out += 8) {
        const int nibble = iq1m_nibble(block.qh, g);
        decode_detail::shifted_group(d * static_cast<float>(2 * iq1m_scale(block, g / 2) + 1),
                                     kIq1Grid[iq1m_entry(block.qs[g], nibble)], nibble >> 3, out);
    }
}

inline void decode(const BlockIq1SRow& block, uint16_t row_scale, float* out) noexcept {
    const float scale = f16_to_f32(row_scale) * static_cast<float>(2 * (block.qh >> 12 & 7) + 1);
    for (int g = 0; g < 4; ++g, out += 8) {
        decode_detail::shifted_group(scale, kIq1Grid[iq1s_entry(block.qs[g], block.qh, g)], block.qh >> 15, out);
    }
}

inline void decode(const BlockIq1MRow& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    for (int g = 0; g < 4; ++g, out += 8) {
        const int nibble = iq1m_nibble(block.qh, g);
        decode_detail::shifted_group(d * static_cast<float>(block.scales >> (4 * (g / 2)) & 15),
                                     kIq1Grid[iq1m_entry(block.qs[g], nibble)], nibble >> 3, out);
    }
}

}  // namespace tessera::formats
