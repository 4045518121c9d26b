// iq4_nl. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>
#include <tessera/formats/levels.hpp>

namespace tessera::formats {

// w = d * kIq4Values[code]
struct BlockIq4Nl : BlockOf<TSR_TYPE_IQ4_NL, kSmallBlock> {
    uint16_t d;
    uint8_t qs[16];
};

inline void decode(const BlockIq4Nl& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 16; ++j) {
        out[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 15]);
        out[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
    }
}

// The extreme value takes the code of largest magnitude, the others the nearest; then the scale that fits these codes
// best.
inline void encode(const float* in, BlockIq4Nl& block) noexcept {
    const float inverse_d = encode_detail::inverse(encode_detail::extreme(in) / static_cast<float>(kIq4Values[0]));
    uint8_t codes[kSmallBlock];
    float products = 0, squares = 0;
    for (int j = 0; j < kSmallBlock; ++j) {
        const float x = in[j] * inverse_d;
        // Values rise with their codes: the code is the number of middles between neighbours that lie below x.
        int code = 0;
        while (code < 15 && 2 * x > static_cast<float>(kIq4Values[code] + kIq4Values[code + 1])) ++code;
        codes[j] = static_cast<uint8_t>(code);
        const auto value = static_cast<float>(kIq4Values[code]);
        products += in[j] * value;
        squares += value * value;
    }
    block.d = f32_to_f16(products / squares);
    for (int j = 0; j < 16; ++j) block.qs[j] = static_cast<uint8_t>(codes[j] | codes[j + 16] << 4);
}

TSR_INTERLEAVED(TSR_TYPE_IQ4_NL_R4, BlockIq4Nl, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) put_nibbles(block.qs, s, r4_nibbles(group + 8, row, s));
}

}  // namespace tessera::formats
