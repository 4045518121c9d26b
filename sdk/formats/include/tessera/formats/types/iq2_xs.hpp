// iq2_xs. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// As iq2_xxs with kIq2XsGrid. Per group a 16-bit number: nine bits of entry, seven of signs; scales of 4 bits for 16
// elements.
struct BlockIq2Xs : BlockOf<TSR_TYPE_IQ2_XS, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t qs[32];
    uint8_t scales[8];
};

inline void decode(const BlockIq2Xs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const float scale = d * (0.5f + static_cast<float>(block.scales[g / 4] >> (4 * (g / 2 % 2)) & 15)) * 0.25f;
        decode_detail::signed_group(scale, kIq2XsGrid[block.qs[g] & 511], even_signs(block.qs[g] >> 9), out);
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ2_XS_R4, BlockIq2Xs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        for (int g = 0; g < 4; ++g) {
            const uint32_t entry = two(group + 8 + 2 * (16 * b + 4 * row + g));
            block.qs[4 * b + g] = static_cast<uint16_t>((entry & 511) | seven_signs(entry >> 9 << 1) << 9);
        }
        block.scales[b] = group[264 + 4 * b + row];
    }
}

}  // namespace tessera::formats
