// iq1_s_row, rows of iq1_s_r4. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// 32 elements of iq1_s under the scale of a row: rows of iq1_s_r4.
struct BlockIq1SRow : BlockOf<TSR_TYPE_IQ1_S_ROW, kSmallBlock> {
    using RowScale = uint16_t;
    uint8_t qs[4];
    uint16_t qh;
};

inline void decode(const BlockIq1SRow& block, uint16_t row_scale, float* out) noexcept {
    const float scale = f16_to_f32(row_scale) * static_cast<float>(2 * (block.qh >> 12 & 7) + 1);
    for (int g = 0; g < 4; ++g, out += 8) {
        decode_detail::shifted_group(scale, kIq1Grid[iq1s_entry(block.qs[g], block.qh, g)], block.qh >> 15, out);
    }
}

TSR_INTERLEAVED(TSR_TYPE_IQ1_S_R4, BlockIq1SRow, 4) {
    for (int g = 0; g < 4; ++g) block.qs[g] = group[4 * g + row];
    block.qh = interleaved_detail::two(group + 16 + 2 * row);
}

}  // namespace tessera::formats
