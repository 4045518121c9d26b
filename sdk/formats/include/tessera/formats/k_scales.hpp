// Scales and minima of q4_K and q5_K.
#pragma once

#include <tessera/formats/block.hpp>

namespace tessera::formats {

struct ScaleMin {
    uint8_t scale;
    uint8_t min;
};

// Group `j` (0..7) of the 12 packed bytes of q4_K and q5_K: the first four groups have six plain bits, the others find
// their low nibbles in bytes 8..11 and their upper two bits on top of the first four's.
inline ScaleMin k_scale_min(const uint8_t* scales, int j) noexcept {
    if (j < 4) return {static_cast<uint8_t>(scales[j] & 63), static_cast<uint8_t>(scales[j + 4] & 63)};
    return {static_cast<uint8_t>((scales[j + 4] & 15) | (scales[j - 4] >> 6 << 4)),
            static_cast<uint8_t>((scales[j + 4] >> 4) | (scales[j] >> 6 << 4))};
}

}  // namespace tessera::formats
