// Conversions between f32 and the two 16-bit float types, in integer arithmetic: the same bits on every machine, at any
// setting of the denormal flags. Sources: IEEE 754-2019 (binary16); bfloat16 is the upper half of a binary32.
#pragma once

#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {

// Exact. Not-a-number keeps its payload.
inline float f16_to_f32(uint16_t half) noexcept {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t fraction = half & 0x3FFu;
    if (exponent == 0) {
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return bit_cast<float>(bit_cast<uint32_t>(magnitude) | sign);
    }
    const uint32_t wide_exponent = exponent == 31 ? 255u : exponent + 112u;
    return bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

// Rounds to nearest, ties to even. Too large becomes infinity; not-a-number becomes a quiet one.
inline uint16_t f32_to_f16(float value) noexcept {
    const uint32_t bits = bit_cast<uint32_t>(value);
    const uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (magnitude >> 13 & 0x3FFu));
    if (magnitude >= 0x477FF000u)
        return static_cast<uint16_t>(sign | 0x7C00u);  // 65520 and above round past the largest
    if (magnitude < 0x38800000u) {
        // Below 2^-14 the result counts units of 2^-24, which is the last place of a float in [0.5, 1).
        const float shifted = bit_cast<float>(magnitude) + 0.5f;
        return static_cast<uint16_t>(sign | (bit_cast<uint32_t>(shifted) - 0x3F000000u));
    }
    magnitude += 0xFFFu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | (magnitude - 0x38000000u) >> 13);
}

// Exact.
inline float bf16_to_f32(uint16_t value) noexcept {
    return bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

// Half of an e8m0 scale of the OCP Microscaling formats: 2^(e - 128). Exact, also where it is below the normal numbers.
inline float half_e8m0_to_f32(uint8_t e) noexcept {
    return bit_cast<float>(e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23);
}

// Rounds to nearest, ties to even; not-a-number becomes a quiet one.
inline uint16_t f32_to_bf16(float value) noexcept {
    const uint32_t bits = bit_cast<uint32_t>(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace tessera::formats
