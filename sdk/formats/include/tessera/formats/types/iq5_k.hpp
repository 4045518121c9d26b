// iq5_k. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// As iq4_k with kIq5kValues; qs and qh as in q5_K
struct BlockIq5K : BlockOf<TSR_TYPE_IQ5_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    uint8_t scales_h[4];
    uint8_t scales_l[8];
    uint8_t qs[128];
    uint8_t qh[32];
};

inline void decode(const BlockIq5K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq5kValues, [&](int h) { return d * static_cast<float>(iq4k_scale(block.scales_l, block.scales_h, h)); },
        [&](int h) { return block.extra >> h & 1 ? kIq5kShift : 0; },
        [&](int h, int j) { return decode_detail::five_bits(block.qs, block.qh, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ5_K_R4, BlockIq5K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    put_iq4k_scales(group + 16, group + 32, row, block);
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 64 + 64 * b, row, s));
        put_bit(block.qh, b, s, r4_nibble_bit(group + 576 + 16 * b, row, s));
    });
}

}  // namespace tessera::formats
