// iq4_xs. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * (scale - 32) * kIq4Values[code]; eight groups of 32, scale 6 bits: four low in scales_l, two high in scales_h
struct BlockIq4Xs : BlockOf<TSR_TYPE_IQ4_XS, kSuperBlock> {
    uint16_t d;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[128];  // per group of 32: 16 bytes as in the formats of 32
};

// Group `j` (0..7) of iq4_xs, centred: -32 .. 31.
inline int iq4xs_scale(const BlockIq4Xs& block, int j) noexcept {
    const int low = block.scales_l[j / 2] >> (4 * (j % 2)) & 15;
    const int high = block.scales_h >> (2 * j) & 3;
    return (low | high << 4) - 32;
}

inline void decode(const BlockIq4Xs& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int group = 0; group < 8; ++group, out += 32) {
        const float scale = d * static_cast<float>(iq4xs_scale(block, group));
        const uint8_t* qs = block.qs + 16 * group;
        for (int j = 0; j < 16; ++j) {
            out[j] = scale * static_cast<float>(kIq4Values[qs[j] & 15]);
            out[j + 16] = scale * static_cast<float>(kIq4Values[qs[j] >> 4]);
        }
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ4_XS_R8, BlockIq4Xs, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int b = 0; b < 8; ++b) {
        const int i = 8 * b + row;
        block.scales_l[b / 2] |= static_cast<uint8_t>(four_of(group + 32, i) << (4 * (b % 2)));
        block.scales_h |= static_cast<uint16_t>(two_of(group + 16, i) << (2 * b));
    }
    each_step([&](int b, int s) {
        const uint32_t codes = four(group + 64 + 128 * b + 32 * (s / 2) + 4 * row) >> (4 * (s % 2)) & kFourBits;
        put_nibbles(block.qs + 16 * b, s, codes);
    });
}

}  // namespace tessera::formats
