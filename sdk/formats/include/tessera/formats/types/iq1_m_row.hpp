// iq1_m_row, rows of iq1_m_r4. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// 32 elements like iq1_m's under the scale of a row, with w = row scale * scale * (code - 1 +- 1/8) and scales of 4
// bits: rows of iq1_m_r4.
struct BlockIq1MRow : BlockOf<TSR_TYPE_IQ1_M_ROW, kSmallBlock, Scales::kOf16> {
    using RowScale = uint16_t;
    uint8_t qs[4];
    uint8_t qh[2];
    uint8_t scales;
};

inline void decode(const BlockIq1MRow& block, uint16_t row_scale, float* out) noexcept {
    const float d = f16_to_f32(row_scale);
    for (int g = 0; g < 4; ++g, out += 8) {
        const int nibble = iq1m_nibble(block.qh, g);
        decode_detail::shifted_group(d * static_cast<float>(block.scales >> (4 * (g / 2)) & 15),
                                     kIq1Grid[iq1m_entry(block.qs[g], nibble)], nibble >> 3, out);
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ1_M_R4, BlockIq1MRow, 4) {
    for (int g = 0; g < 4; ++g) block.qs[g] = group[4 * g + row];
    for (int i = 0; i < 2; ++i) block.qh[i] = group[16 + 4 * i + row];
    block.scales = group[24 + row];
}

}  // namespace tessera::formats
