// q8_KV: int8 under the scale of a row. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>

namespace tessera::formats {

// w = row scale * code. A row begins with its scale and the sum of its codes (int32), which is not read.
struct BlockQ8KV : BlockOf<TSR_TYPE_Q8_KV, kSmallBlock> {
    using RowScale = float;
    static constexpr uint32_t kRowHead = 8;
    int8_t qs[32];
};

inline void codes_of(const BlockQ8KV& block, float row_scale, int half, Codes16& to) noexcept {
    memcpy(to.codes, block.qs + 16 * half, 16);
    to.scale = row_scale;
}

}  // namespace tessera::formats
