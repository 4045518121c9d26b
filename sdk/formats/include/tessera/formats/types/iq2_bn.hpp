// iq2_bn: three levels in two bits each under the scale of a row (BitNet). Source: what ik_llama.cpp's own code makes
// of such rows, recorded in tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>

namespace tessera::formats {

// w = row scale * (code - 1); element 16 k + l is bits 2 k of byte l
struct BlockIq2Bn : BlockOf<TSR_TYPE_IQ2_BN, 64> {
    using RowScale = float;
    uint8_t qs[16];
};

inline void codes_of(const BlockIq2Bn& block, float row_scale, int half, Codes16& to) noexcept {
    for (int i = 0; i < 16; ++i) to.codes[i] = static_cast<int8_t>((block.qs[i] >> (2 * half) & 3) - 1);
    to.scale = row_scale;
}

}  // namespace tessera::formats
