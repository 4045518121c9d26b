// What iq1, iq2 and iq3 share: a byte and some further bits choose 8 or 4 neighbouring elements at once from a codebook
// (codebooks.hpp); signs lie beside. "group" g is elements 8 g .. 8 g + 7 of a block of 32.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/codebooks.hpp>

namespace tessera::formats {

// The values of the codes of codebooks.hpp.
inline constexpr int8_t kIq2Values[4] = {8, 25, 43, 0};
inline constexpr int8_t kIq3XxsValues[8] = {4, 12, 20, 28, 36, 44, 52, 62};
// The eight signs of a group from seven bits: the number of minuses is even.
constexpr uint8_t even_signs(uint32_t seven) noexcept {
    return static_cast<uint8_t>((seven & 127) | (parity(seven & 127) << 7));
}
inline int iq1s_entry(uint8_t low, uint16_t qh, int group) noexcept {
    return low | (qh >> (3 * group) & 7) << 8;
}
// `nibble`: three upper bits of the entry and the sign of the shift.
inline int iq1m_entry(uint8_t low, int nibble) noexcept {
    return low | (nibble & 7) << 8;
}
inline int iq1m_nibble(const uint8_t* qh, int g) noexcept {
    return qh[g / 2] >> (4 * (g % 2)) & 15;
}

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

}  // namespace tessera::formats
