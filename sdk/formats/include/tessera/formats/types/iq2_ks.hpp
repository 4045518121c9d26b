// iq2_ks. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = row scale * (scale - 16) * (kIq2kValues[code] + ...); scales of five bits for 32 elements: a nibble of scales,
// the fifth bit in bit 8 + b of extra; bit b of extra chooses the levels
struct BlockIq2Ks : BlockOf<TSR_TYPE_IQ2_KS, kSuperBlock> {
    using RowScale = uint16_t;
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
};

// Block `b` of 32: -16 .. 15.
inline int iq2ks_scale(const BlockIq2Ks& block, int b) noexcept {
    const int low = block.scales[b / 2] >> (4 * (b % 2)) & 15;
    return (low | (block.extra >> (8 + b) & 1) << 4) - 16;
}

inline void decode(const BlockIq2Ks& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    decode_detail::decode_levels(
        kIq2kValues, [&](int h) { return d * static_cast<float>(iq2ks_scale(block, h / 2)); },
        [&](int h) { return block.extra >> (h / 2) & 1 ? kIq2kShift : 0; },
        [&](int h, int j) { return decode_detail::two_bits(block.qs, h, j); }, out);
}

}  // namespace tessera::formats
