// q2_K. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (scales & 15) * code - dmin * (scales >> 4); 16 groups of 16
struct BlockQ2K : BlockOf<TSR_TYPE_Q2_K, kSuperBlock, Scales::kOf16WithOffset> {
    uint8_t scales[16];
    uint8_t qs[64];  // per 128 elements: 32 bytes, element 32 k + l in bits 2 k of byte l
    uint16_t d;
    uint16_t dmin;
};

inline void decode(const BlockQ2K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(block.scales[group] & 15);
        const float min = dmin * static_cast<float>(block.scales[group] >> 4);
        const uint8_t* qs = block.qs + 32 * (group / 8) + 16 * (group % 2);
        const int shift = 2 * (group / 2 % 4);
        for (int j = 0; j < 16; ++j) *out++ = scale * static_cast<float>(qs[j] >> shift & 3) - min;
    }
}

TSR_INTERLEAVED(TSR_TYPE_Q2_K_R4, BlockQ2K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    for (int h = 0; h < 16; ++h) block.scales[h] = group[16 + 4 * h + row];
    each_step([&](int b, int s) { put_two_bits(block.qs, b, s, r4_two_bits(group + 80 + 32 * b, row, s)); });
}

}  // namespace tessera::formats
