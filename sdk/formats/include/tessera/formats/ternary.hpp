// Numbers to the base 3, five of them in a byte. Freestanding.
#pragma once

#include <tessera/formats/freestanding.hpp>

namespace tessera::formats {

// A byte is a fraction of 256 that begins with five digits to the base 3: digit n, 0 to 2. Exact for what encoders
// write, and what ggml's code makes of every other byte.
constexpr int ternary_digit(uint32_t byte, int n) noexcept {
    constexpr uint64_t kPowers = 0x51'1B'09'03'01;  // of 3, a byte each
    const auto power = static_cast<uint32_t>(kPowers >> (8 * n) & 255);
    return static_cast<int>((byte * power & 255) * 3 >> 8);  // what follows the first n digits, times 3
}

}  // namespace tessera::formats
