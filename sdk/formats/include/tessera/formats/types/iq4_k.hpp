// iq4_k. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * (scale - 32) * (kIq4Values[code] + ...); scales of six bits a half: a nibble of scales_l, two bits of
// scales_h; qs as in iq4_xs
struct BlockIq4K : BlockOf<TSR_TYPE_IQ4_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
};

inline void decode(const BlockIq4K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq4Values, [&](int h) { return d * static_cast<float>(iq4k_scale(block.scales_l, block.scales_h, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq4kShift : 0; },
        [&](int h, int j) { return decode_detail::nibble(block.qs, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ4_K_R4, BlockIq4K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    put_iq4k_scales(group + 16, group + 32, row, block);
    each_step([&](int b, int s) { put_nibbles(block.qs + 16 * b, s, r4_nibbles(group + 64 + 64 * b, row, s)); });
}

}  // namespace tessera::formats
