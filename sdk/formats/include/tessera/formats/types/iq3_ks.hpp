// iq3_ks. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = row scale * (scale - 16) * (kIq3kValues[code] + ...). scales: block b < 4 in the low nibble of byte b, b >= 4 in
// the high one of b - 4; fifth bit in bit b of extra; bit 8 + b chooses the levels
struct BlockIq3Ks : BlockOf<TSR_TYPE_IQ3_KS, kSuperBlock> {
    using RowScale = uint16_t;
    uint16_t extra;
    uint8_t scales[4];
    uint8_t qs[64];
    uint8_t qh[32];
};

inline int iq3ks_scale(const BlockIq3Ks& block, int b) noexcept {
    const int low = block.scales[b % 4] >> (4 * (b / 4)) & 15;
    return (low | (block.extra >> b & 1) << 4) - 16;
}

inline void decode(const BlockIq3Ks& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    decode_detail::decode_levels(
        kIq3kValues, [&](int h) { return d * static_cast<float>(iq3ks_scale(block, h / 2)); },
        [&](int h) { return block.extra >> (8 + h / 2) & 1 ? kIq3kShift : 0; },
        [&](int h, int j) { return decode_detail::three_bits(block.qs, block.qh, h, j); }, out);
}

}  // namespace tessera::formats
