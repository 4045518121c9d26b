// q5_K. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/k_scales.hpp>

namespace tessera::formats {

// As q4_K; the fifth bit of element 32 k + l is bit k of qh[l]
struct BlockQ5K : BlockOf<TSR_TYPE_Q5_K, kSuperBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t dmin;
    uint8_t scales[12];
    uint8_t qh[32];
    uint8_t qs[128];
};

inline void decode(const BlockQ5K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float dmin = f16_to_f32(block.dmin);
    for (int group = 0; group < 8; ++group) {
        const ScaleMin packed = k_scale_min(block.scales, group);
        const float scale = d * static_cast<float>(packed.scale);
        const float min = dmin * static_cast<float>(packed.min);
        const uint8_t* qs = block.qs + 32 * (group / 2);
        const int shift = 4 * (group % 2);
        for (int j = 0; j < 32; ++j) {
            const int code = (qs[j] >> shift & 15) | (block.qh[j] >> group & 1) << 4;
            *out++ = scale * static_cast<float>(code) - min;
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_Q5_K_R4, BlockQ5K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.dmin = two(group + 8 + 2 * row);
    put_scale_min(group + 16, group + 32, row, block.scales);
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 192 + 64 * b, row, s));
        const int bit = 4 * (s / 4) + 2 * (s % 2) + s / 2 % 2;
        put_bit(block.qh, b, s, four(group + 64 + 16 * b + 4 * row) >> bit & kOneBit);
    });
}

}  // namespace tessera::formats
