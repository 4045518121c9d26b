// q6_K. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * scales[i] * (code - 32); 16 groups of 16
struct BlockQ6K : BlockOf<TSR_TYPE_Q6_K, kSuperBlock, Scales::kOf16> {
    uint8_t ql[128];  // per 128 elements: 64 bytes, elements 0..63 in the low nibbles, 64..127 in the high ones
    uint8_t qh[64];   // per 128 elements: 32 bytes, element 32 k + l in bits 2 k of byte l
    int8_t scales[16];
    uint16_t d;
};

inline void decode(const BlockQ6K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(block.scales[group]);
        const int half = group / 8;         // which 128 elements
        const int within = group % 8 * 16;  // first element inside them
        const uint8_t* ql = block.ql + 64 * half + within % 64;
        const uint8_t* qh = block.qh + 32 * half + within % 32;
        const int shift_low = within < 64 ? 0 : 4;
        const int shift_high = 2 * (within / 32);
        for (int j = 0; j < 16; ++j) {
            const int code = (ql[j] >> shift_low & 15) | (qh[j] >> shift_high & 3) << 4;
            *out++ = scale * static_cast<float>(code - 32);
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_Q6_K_R4, BlockQ6K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int h = 0; h < 16; ++h) block.scales[h] = static_cast<int8_t>(group[8 + 4 * h + row]);
    each_step([&](int b, int s) {
        const uint32_t low = r4_nibbles(group + 328 + 64 * b, row, s);
        join_four(block.ql + 64 * (b / 4) + 32 * (b % 2) + 4 * s, low << (4 * (b % 4 / 2)));
        const int shift = 4 * (s % 2) + 2 * (s / 2 % 2);
        put_two_bits(block.qh, b, s, four(group + 72 + 32 * b + 16 * (s / 4) + 4 * row) >> shift & kTwoBits);
    });
}

}  // namespace tessera::formats
