// q8_row, rows of q8_KV_r8. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = row scale * code
struct BlockQ8Row : BlockOf<TSR_TYPE_Q8_ROW, kSmallBlock> {
    using RowScale = float;
    int8_t qs[32];
};

inline void decode(const BlockQ8Row& block, float row_scale, float* out) noexcept {
    for (int j = 0; j < kSmallBlock; ++j) out[j] = row_scale * static_cast<float>(block.qs[j]);
}

TSR_INTERLEAVED(TSR_TYPE_Q8_KV_R8, BlockQ8Row, 8) {
    using namespace interleaved_detail;
    for (int s = 0; s < 8; ++s) put_four(block.qs + 4 * s, step_of<8>(group, row, s));
}

}  // namespace tessera::formats
