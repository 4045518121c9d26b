// q4_0. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (code - 8)
struct BlockQ4_0 : BlockOf<TSR_TYPE_Q4_0, kSmallBlock> {
    uint16_t d;
    uint8_t qs[16];
};

inline void decode(const BlockQ4_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
        out[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
    }
}

inline void encode(const float* in, BlockQ4_0& block) noexcept {
    encode_detail::encode_centred(in, block, 8);
}

TSR_INTERLEAVED(TSR_TYPE_Q4_0_R8, BlockQ4_0, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 4; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 16, row, i));
}

}  // namespace tessera::formats
