// Rounding to bf16.
#pragma once

#include <bit>
#include <cstdint>

namespace tessera::cuda::ptx {

// To nearest even, once: what f64 has more than f32 has goes into the last bit of it first.
inline uint16_t brain_of(double value) {
    const auto narrow = static_cast<float>(value);
    auto bits = std::bit_cast<uint32_t>(narrow);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
    if (double{narrow} != value && (bits & 1) == 0) {
        const bool away = (value < 0 ? -value : value) > double{std::bit_cast<float>(bits & 0x7FFFFFFFu)};
        bits = away ? bits | 1 : bits - 1;
    }
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace tessera::cuda::ptx
