// iq3_k. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * +-(2 scale + 1) * (kIq3kValues[code] + ...); minus where bit h of scales_h is set; qs and qh as in q3_K
struct BlockIq3K : BlockOf<TSR_TYPE_IQ3_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint16_t scales_h;
    uint8_t scales_l[8];
    uint8_t qs[64];
    uint8_t qh[32];
};

// Half `h` of iq3_k: odd, -31 .. 31.
inline int iq3k_scale(const BlockIq3K& block, int h) noexcept {
    const int size = 2 * (block.scales_l[h / 2] >> (4 * (h % 2)) & 15) + 1;
    return block.scales_h >> h & 1 ? -size : size;
}

inline void decode(const BlockIq3K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq3kValues, [&](int h) { return d * static_cast<float>(iq3k_scale(block, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq3kShift : 0; },
        [&](int h, int j) { return decode_detail::three_bits(block.qs, block.qh, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ3_K_R4, BlockIq3K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    for (int h = 0; h < 16; ++h) {
        const int i = 4 * h + row;
        block.scales_l[h / 2] |= static_cast<uint8_t>(four_of(group + 24, i) << (4 * (h % 2)));
        block.scales_h |= static_cast<uint16_t>((group[16 + i % 8] >> (i / 8) & 1) << h);
    }
    each_step([&](int b, int s) {
        put_two_bits(block.qs, b, s, r4_two_bits(group + 56 + 32 * b, row, s));
        put_bit(block.qh, b, s, r4_bit(group + 312 + 16 * b, row, s));
    });
}

}  // namespace tessera::formats
