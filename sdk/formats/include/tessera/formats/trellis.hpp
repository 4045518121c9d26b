// Codes of the trellis formats (iq1_kt to iq4_kt): a number of a few bits starts a sequence of pseudo-random codes, and
// the encoder looks for the start whose codes come nearest. Source: what ik_llama.cpp's own code makes of such rows,
// recorded in tests/formats; the idea is QTIP's (Tseng et al., 2024, arXiv:2406.11235). Freestanding.
#pragma once

#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {

inline constexpr uint32_t kTrellisOffset = 4096;  // of starts; a second set of codes begins 32768 later
inline constexpr uint32_t kTrellisBits = 0x3F3F3F3Fu;
inline constexpr int kTrellisCentre = 126;

// The factor to the power n + 1.
constexpr uint32_t trellis_power(int n) noexcept {
    constexpr uint32_t k1 = 0xCBAC1FEDu, k2 = k1 * k1, k4 = k2 * k2;
    constexpr uint32_t kPowers[8] = {k1, k2, k2 * k1, k4, k4 * k1, k4 * k2, k4 * k2 * k1, k4 * k4};
    return kPowers[n];
}

// Code n (0 to 7) of the sequence, -126 to 126: state n + 1 is the start times the factor n + 1 times, modulo 2^32, and
// its code the sum of the low six bits of its bytes.
constexpr int trellis_code(uint32_t start, int n) noexcept {
    const uint32_t bits = start * trellis_power(n) & kTrellisBits;
    return static_cast<int>(bits * 0x01010101u >> 24) - kTrellisCentre;
}

}  // namespace tessera::formats
