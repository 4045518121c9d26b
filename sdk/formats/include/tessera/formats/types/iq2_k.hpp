// iq2_k. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * (scale - 8) * (kIq2kValues[code] + (extra ? kIq2kShift : 0)); qs as in q2_K
struct BlockIq2K : BlockOf<TSR_TYPE_IQ2_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;     // bit h
    uint8_t scales[8];  // a nibble a half
    uint8_t qs[64];
};

inline void decode(const BlockIq2K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq2kValues, [&](int h) { return d * static_cast<float>((block.scales[h / 2] >> (4 * (h % 2)) & 15) - 8); },
        [&](int h) { return block.extra >> h & 1 ? kIq2kShift : 0; },
        [&](int h, int j) { return decode_detail::two_bits(block.qs, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ2_K_R4, BlockIq2K, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    block.extra = extra_of(group + 8, row);
    for (int h = 0; h < 16; ++h) {
        block.scales[h / 2] |= static_cast<uint8_t>(four_of(group + 16, 4 * h + row) << (4 * (h % 2)));
    }
    each_step([&](int b, int s) { put_two_bits(block.qs, b, s, r4_two_bits(group + 48 + 32 * b, row, s)); });
}

}  // namespace tessera::formats
