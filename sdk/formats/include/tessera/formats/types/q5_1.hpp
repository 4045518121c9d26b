// q5_1. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/types/q5_0.hpp>

namespace tessera::formats {

// w = d * code + m
struct BlockQ5_1 : BlockOf<TSR_TYPE_Q5_1, kSmallBlock, Scales::kOf32WithOffset> {
    uint16_t d;
    uint16_t m;
    uint8_t qh[4];
    uint8_t qs[16];
};

inline void decode(const BlockQ5_1& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    const float m = f16_to_f32(block.m);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(five_bit_code(block, j)) + m;
}

inline void encode(const float* in, BlockQ5_1& block) noexcept {
    encode_detail::encode_from_minimum(in, block, 31);
}

}  // namespace tessera::formats
