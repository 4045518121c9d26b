// q8_0. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * code
struct BlockQ8_0 : BlockOf<TSR_TYPE_Q8_0, kSmallBlock> {
    uint16_t d;
    int8_t qs[32];
};

inline void decode(const BlockQ8_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

inline void encode(const float* in, BlockQ8_0& block) noexcept {
    const float d = encode_detail::largest_magnitude(in) / 127.0f;
    const float inverse_d = encode_detail::inverse(d);
    for (int j = 0; j < kSmallBlock; ++j) block.qs[j] = encode_detail::signed_code(in[j] * inverse_d);
    block.d = f32_to_f16(d);
}

TSR_INTERLEAVED(TSR_TYPE_Q8_0_R8, BlockQ8_0, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) put_four(block.qs + 4 * s, step_of<8>(group + 16, row, s));
}

}  // namespace tessera::formats
