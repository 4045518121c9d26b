// iq4_kss: iq4_ks in 4 bits an element, scales included. Source: what ik_llama.cpp's own code makes of such rows,
// recorded in tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// 32 elements are eight words. Their lowest bits are the scale, as in iq4_ks. The other bits, each xor that above it
// (the lowest xor the one above), are the 16 bytes of codes of 32 elements as in block.hpp.
struct BlockIq4Kss : BlockOf<TSR_TYPE_IQ4_KSS, kSuperBlock> {
    using RowScale = float;
    uint16_t qs[64];
};

inline void codes_of(const BlockIq4Kss& block, float row_scale, int half, Codes16& to) noexcept {
    const uint16_t* words = block.qs + 8 * (half / 2);
    uint32_t scale = 0;
    for (int k = 0; k < 8; ++k) scale |= (words[k] & 1u) << k;
    const int shift = scale & 1 ? kIq4kShift : 0;
    for (int i = 0; i < 16; ++i) {
        const uint32_t bits = words[i / 2] & 0xFFFEu;
        const uint32_t codes = (bits ^ bits >> 1) >> (8 * (i % 2) + 4 * (half % 2)) & 15;
        to.codes[i] = static_cast<int8_t>(kIq4Values[codes] + shift);
    }
    to.scale = row_scale * static_cast<float>(iq4ks_scale(static_cast<uint8_t>(scale)));
}

}  // namespace tessera::formats
