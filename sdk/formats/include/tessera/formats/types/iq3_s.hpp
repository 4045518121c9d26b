// iq3_s. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (2 scale + 1) * magnitude with sign. Bit i of qh[b] is the ninth bit of entry i (of kIq3SGrid) of block b of
// 32; scales of 4 bits for 32 elements.
struct BlockIq3S : BlockOf<TSR_TYPE_IQ3_S, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
    uint8_t qh[8];
    uint8_t signs[32];
    uint8_t scales[4];
};

// Entry `i` (0..63) of iq3_s.
inline int iq3s_entry(const BlockIq3S& block, int i) noexcept {
    return block.qs[i] | (block.qh[i / 8] >> (i % 8) & 1) << 8;
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

TSR_INTERLEAVED(TSR_TYPE_IQ3_S_R4, BlockIq3S, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        for (int i = 0; i < 8; ++i) block.qs[8 * b + i] = group[8 + 32 * b + 8 * (i % 4) + 4 * (i / 4) + row];
        block.qh[b] = group[264 + 4 * b + row];
        // Bit s of byte i is of element 4 s + i.
        const uint32_t signs = four(group + 296 + 16 * b + 4 * row);
        for (int s = 0; s < 8; ++s) {
            const uint32_t bits = signs >> s & kOneBit;
            block.signs[4 * b + s / 2] |=
                static_cast<uint8_t>(((bits | bits >> 7 | bits >> 14 | bits >> 21) & 15) << (4 * (s % 2)));
        }
        const int i = 4 * b + row, scale = group[424 + i % 16] >> (4 * (i / 16)) & 15;
        block.scales[b / 2] |= static_cast<uint8_t>(scale << (4 * (b % 2)));
    }
}

}  // namespace tessera::formats
