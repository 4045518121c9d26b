// q4_K. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/k_scales.hpp>

namespace tessera::formats {

// w = d * scale * code - dmin * min; eight groups of 32, scale and min of 6 bits (see k_scale_min)
struct BlockQ4K : BlockOf<TSR_TYPE_Q4_K, kSuperBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    // Per 64 elements: 32 bytes, the first 32 elements in the low nibbles, the others in the high ones.
    uint8_t qs[128];
};

inline void decode(const BlockQ4K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 8; ++group) {
        const ScaleMin packed = k_scale_min(block.scales, group);
        const float scale = d * static_cast<float>(packed.scale);
        const float min = dmin * static_cast<float>(packed.min);
        const uint8_t* qs = block.qs + 32 * (group / 2);
        const int shift = 4 * (group % 2);
        for (int j = 0; j < 32; ++j) *out++ = scale * static_cast<float>(qs[j] >> shift & 15) - min;
    }
}

TSR_INTERLEAVED(TSR_TYPE_Q4_K_R4, BlockQ4K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    put_scale_min(group + 16, group + 32, row, block.scales);
    each_step([&](int b, int s) { put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 64 + 64 * b, row, s)); });
}

}  // namespace tessera::formats
