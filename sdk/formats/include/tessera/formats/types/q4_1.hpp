// q4_1. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {

// w = d * code + m
struct BlockQ4_1 : BlockOf<TSR_TYPE_Q4_1, kSmallBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t m;
    uint8_t qs[16];
};

inline void decode(const BlockQ4_1& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float m = f16_to_f32(block.m);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(block.qs[j] & 15) + m;
        out[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
    }
}

inline void encode(const float* in, BlockQ4_1& block) noexcept {
    encode_detail::encode_from_minimum(in, block, 15);
}

}  // namespace tessera::formats
