// iq4_ks. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = row scale * ((scale & 254) - 127) * (kIq4Values[code] + ...); bit 0 of scale chooses the levels
struct BlockIq4Ks : BlockOf<TSR_TYPE_IQ4_KS, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[8];
    uint8_t qs[128];
};

inline void decode(const BlockIq4Ks& block, float row_scale, float* out) noexcept {
    decode_detail::decode_levels(
        kIq4Values, [&](int h) { return row_scale * static_cast<float>(iq4ks_scale(block.scales[h / 2])); },
        [&](int h) { return block.scales[h / 2] & 1 ? kIq4kShift : 0; },
        [&](int h, int j) { return decode_detail::nibble(block.qs, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ4_KS_R4, BlockIq4Ks, 4) {
    using namespace interleaved_detail;
    for (int b = 0; b < 8; ++b) block.scales[b] = group[4 * b + row];
    each_step([&](int b, int s) { put_nibbles(block.qs + 16 * b, s, r4_nibbles(group + 32 + 64 * b, row, s)); });
}

}  // namespace tessera::formats
