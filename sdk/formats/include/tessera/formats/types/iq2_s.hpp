// iq2_s. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// As iq2_xs with kIq2SGrid: low eight bits of an entry in qs, two in qh (four groups a byte), eight signs in signs.
struct BlockIq2S : BlockOf<TSR_TYPE_IQ2_S, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint8_t qs[32];
    uint8_t signs[32];
    uint8_t qh[8];
    uint8_t scales[8];
};

// Entry of group `g` (0..31, of the super-block).
inline int iq2s_entry(const BlockIq2S& block, int g) noexcept {
    return block.qs[g] | (block.qh[g / 4] >> (2 * (g % 4)) & 3) << 8;
}

inline void decode(const BlockIq2S& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const float scale = d * (0.5f + static_cast<float>(block.scales[g / 4] >> (4 * (g / 2 % 2)) & 15)) * 0.25f;
        decode_detail::signed_group(scale, kIq2SGrid[iq2s_entry(block, g)], block.signs[g], out);
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ2_S_R4, BlockIq2S, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        put_four(block.qs + 4 * b, four(group + 8 + 16 * b + 4 * row));
        block.qh[b] = group[136 + 4 * b + row];
        put_four(block.signs + 4 * b, four(group + 168 + 16 * b + 4 * row));
        block.scales[b] = group[296 + 4 * b + row];
    }
}

}  // namespace tessera::formats
