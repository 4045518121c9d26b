// iq5_ks. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// As iq4_ks with kIq5kValues; qs and qh as in q5_K
struct BlockIq5Ks : BlockOf<TSR_TYPE_IQ5_KS, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[8];
    uint8_t qs[128];
    uint8_t qh[32];
};

inline void decode(const BlockIq5Ks& block, float row_scale, float* out) noexcept {
    decode_detail::decode_levels(
        kIq5kValues, [&](int h) { return row_scale * static_cast<float>(iq4ks_scale(block.scales[h / 2])); },
        [&](int h) { return block.scales[h / 2] & 1 ? kIq5kShift : 0; },
        [&](int h, int j) { return decode_detail::five_bits(block.qs, block.qh, h, j); }, out);
}

TSR_INTERLEAVED(TSR_TYPE_IQ5_KS_R4, BlockIq5Ks, 4) {
    using namespace interleaved_detail;
    for (int b = 0; b < 8; ++b) block.scales[b] = group[4 * b + row];
    each_step([&](int b, int s) {
        put_wide_nibbles(block.qs, b, s, r4_nibbles(group + 32 + 64 * b, row, s));
        put_bit(block.qh, b, s, r4_nibble_bit(group + 544 + 16 * b, row, s));
    });
}

}  // namespace tessera::formats
