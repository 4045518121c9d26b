// mxfp4. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = 2^(e - 128) * kMxfp4Values[code]
struct BlockMxfp4 : BlockOf<TSR_TYPE_MXFP4, kSmallBlock> {
    uint8_t e;
    uint8_t qs[16];
};

// A scale near `d`, which is positive, for random blocks. Formats whose scale is no f16 `d` have such a function.
inline void set_scale(BlockMxfp4& block, float d) noexcept {
    const uint32_t exponent = bit_cast<uint32_t>(d) >> 23 & 255u;
    block.e = static_cast<uint8_t>(exponent < 254 ? exponent + 1 : 254u);
}

inline void decode(const BlockMxfp4& block, float* out) noexcept {
    const float d = half_e8m0_to_f32(block.e);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(kMxfp4Values[block.qs[j] & 15]);
        out[j + 16] = d * static_cast<float>(kMxfp4Values[block.qs[j] >> 4]);
    }
}

TSR_INTERLEAVED(TSR_TYPE_MXFP4_R8, BlockMxfp4, 8) {
    using namespace interleaved_detail;
    block.e = group[row];
    for (int i = 0; i < 4; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 8, row, i));
}

}  // namespace tessera::formats
