// q3_K. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (scale - 32) * (code - 4); 16 groups of 16. The third bit of element 32 k + l is bit k of hmask[l]
struct BlockQ3K : BlockOf<TSR_TYPE_Q3_K, kSuperBlock, Scales::kOf16> {
    uint8_t hmask[32];
    uint8_t qs[64];      // as in q2_K
    uint8_t scales[12];  // 16 of 6 bits: low nibbles in bytes 0..7 (j and j + 8 share one), high pairs in bytes 8..11
    uint16_t d;
};

// Group `j` (0..15) of the 12 packed bytes of q3_K, centred: -32 .. 31.
inline int q3k_scale(const uint8_t* scales, int j) noexcept {
    const int low = j < 8 ? scales[j] & 15 : scales[j - 8] >> 4;
    const int high = scales[8 + j % 4] >> (2 * (j / 4)) & 3;
    return (low | high << 4) - 32;
}

inline void decode(const BlockQ3K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 16; ++group) {
        const float scale = d * static_cast<float>(q3k_scale(block.scales, group));
        const uint8_t* qs = block.qs + 32 * (group / 8) + 16 * (group % 2);
        const uint8_t* high = block.hmask + 16 * (group % 2);
        const int shift = 2 * (group / 2 % 4);
        for (int j = 0; j < 16; ++j) {
            const int code = (qs[j] >> shift & 3) | (high[j] >> (group / 2) & 1) << 2;
            *out++ = scale * static_cast<float>(code - 4);
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_Q3_K_R4, BlockQ3K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int h = 0; h < 16; ++h) {
        const int scale = six_of(group + 8, group + 24, row, h);
        block.scales[h % 8] |= static_cast<uint8_t>((scale & 15) << (4 * (h / 8)));
        block.scales[8 + h % 4] |= static_cast<uint8_t>((scale >> 4) << (2 * (h / 4)));
    }
    each_step([&](int b, int s) {
        put_two_bits(block.qs, b, s, r4_two_bits(group + 184 + 32 * b, row, s));
        put_bit(block.hmask, b, s, r4_bit(group + 56 + 16 * b, row, s));
    });
}

}  // namespace tessera::formats
