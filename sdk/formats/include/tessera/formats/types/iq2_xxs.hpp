// iq2_xxs. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (scale + 1/2) / 4 * magnitude with sign. Per 32 elements 8 bytes: four entries of kIq2XxsGrid, then a 32-bit
// field: seven sign bits of each group, and in the upper four bits the scale.
struct BlockIq2Xxs : BlockOf<TSR_TYPE_IQ2_XXS, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
};

// The field of block `b` of 32: seven sign bits of each group and the scale.
inline uint32_t iq2xxs_field(const BlockIq2Xxs& block, int b) noexcept {
    uint32_t field;
    memcpy(&field, block.qs + 8 * b + 4, 4);
    return field;
}

inline void decode(const BlockIq2Xxs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int b = 0; b < 8; ++b) {
        const uint32_t field = iq2xxs_field(block, b);
        const float scale = d * (0.5f + static_cast<float>(field >> 28)) * 0.25f;
        for (int g = 0; g < 4; ++g, out += 8) {
            decode_detail::signed_group(scale, kIq2XxsGrid[block.qs[8 * b + g]], even_signs(field >> (7 * g)), out);
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ2_XXS_R4, BlockIq2Xxs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        put_four(block.qs + 8 * b, four(group + 136 + 16 * b + 4 * row));
        put_four(block.qs + 8 * b + 4, signs_and_scale(group + 8 + 16 * b + 4 * row));
    }
}

}  // namespace tessera::formats
