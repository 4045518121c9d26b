// nvfp4: e2m1 numbers with a scale for 16. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = scale * kMxfp4Values[code]. 16 elements are 8 bytes: the first eight in their low nibbles, the others in the
// high.
struct BlockNvfp4 : BlockOf<TSR_TYPE_NVFP4, 64, Scales::kOf16> {
    static constexpr int kLargestCode = 12;
    uint8_t scales[4];  // e4m3 without sign, see nvfp4_scale
    uint8_t qs[32];
};

// Half of an e4m3 number (its sign is not looked at), as kMxfp4Values is doubled. NaN counts as nought.
inline float nvfp4_scale(uint8_t e4m3) noexcept {
    const uint32_t exponent = e4m3 >> 3 & 15u, fraction = e4m3 & 7u;
    if (e4m3 == 0x7F) return 0;
    if (exponent == 0) return static_cast<float>(fraction) * 0x1p-10f;
    return bit_cast<float>((exponent + 119u) << 23 | fraction << 20);
}

inline void codes_of(const BlockNvfp4& block, int half, Codes16& to) noexcept {
    for (int i = 0; i < 8; ++i) {
        const uint8_t both = block.qs[8 * half + i];
        to.codes[i] = kMxfp4Values[both & 15];
        to.codes[i + 8] = kMxfp4Values[both >> 4];
    }
    to.scale = nvfp4_scale(block.scales[half]);
}

// Scales near `d`, which is not negative, for random blocks.
inline void set_scale(BlockNvfp4& block, float d) noexcept {
    const uint32_t bits = bit_cast<uint32_t>(d > 0x1p7f ? 0x1p7f : d);
    const uint32_t e4m3 = d < 0x1p-7f ? static_cast<uint32_t>(d * 0x1p10f) : (bits >> 20) - (119u << 3);
    for (uint8_t& scale : block.scales) scale = static_cast<uint8_t>(e4m3);
}

}  // namespace tessera::formats
