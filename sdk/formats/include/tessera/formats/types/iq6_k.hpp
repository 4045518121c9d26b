// iq6_k. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * scale * (kIq6kValues[code] + ...); qs as in q5_K; qh per 128 elements: 32 bytes, element 32 k + l in bits 2 k
// of byte l
struct BlockIq6K : BlockOf<TSR_TYPE_IQ6_K, kSuperBlock, Scales::kOf16> {
    uint16_t d;
    uint16_t extra;
    int8_t scales[16];
    uint8_t qs[128];
    uint8_t qh[64];
};

inline void decode(const BlockIq6K& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    decode_detail::decode_levels(
        kIq6kValues, [&](int h) { return d * static_cast<float>(block.scales[h]); },
        [&](int h) { return block.extra >> h & 1 ? kIq6kShift : 0; },
        [&](int h, int j) { return decode_detail::six_bits(block.qs, block.qh, h, j); }, out);
}

}  // namespace tessera::formats
