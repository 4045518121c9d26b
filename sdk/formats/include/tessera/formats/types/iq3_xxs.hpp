// iq3_xxs. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (scale + 1/2) / 2 * magnitude with sign. qs: entries of kIq3XxsGrid, 4 elements each; fields as in iq2_xxs.
struct BlockIq3Xxs : BlockOf<TSR_TYPE_IQ3_XXS, kSuperBlock> {
    uint16_t d;
    uint8_t qs[64];
    uint8_t fields[32];
};

inline uint32_t iq3xxs_field(const BlockIq3Xxs& block, int b) noexcept {
    uint32_t field;
    memcpy(&field, block.fields + 4 * b, 4);
    return field;
}

inline void decode(const BlockIq3Xxs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int b = 0; b < 8; ++b) {
        const uint32_t field = iq3xxs_field(block, b);
        const float scale = d * (0.5f + static_cast<float>(field >> 28)) * 0.5f;
        for (int g = 0; g < 4; ++g, out += 8) {
            const uint8_t* entries = block.qs + 8 * b + 2 * g;
            decode_detail::signed_pair(
                scale, kIq3XxsGrid[entries[0]], kIq3XxsGrid[entries[1]], even_signs(field >> (7 * g)),
                [](int code) { return kIq3XxsValues[code]; }, out);
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ3_XXS_R4, BlockIq3Xxs, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        memcpy(block.qs + 8 * b, group + 136 + 32 * b + 8 * row, 8);
        put_four(block.fields + 4 * b, signs_and_scale(group + 8 + 16 * b + 4 * row));
    }
}

}  // namespace tessera::formats
