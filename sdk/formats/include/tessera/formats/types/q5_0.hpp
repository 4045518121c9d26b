// q5_0. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (code - 16); bit j of qh, read as a little-endian uint32, is the fifth bit of element j
struct BlockQ5_0 : BlockOf<TSR_TYPE_Q5_0, kSmallBlock> {
    uint16_t d;
    uint8_t qh[4];
    uint8_t qs[16];
};

// The code (0..31) of element `j` of a block of q5_0 or q5_1.
template <class Block>
inline int five_bit_code(const Block& block, int j) noexcept {
    const int low = j < 16 ? block.qs[j] & 15 : block.qs[j - 16] >> 4;
    return low | (block.qh[j / 8] >> (j % 8) & 1) << 4;
}

inline void decode(const BlockQ5_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(five_bit_code(block, j) - 16);
}

inline void encode(const float* in, BlockQ5_0& block) noexcept {
    encode_detail::encode_centred(in, block, 16);
}

TSR_INTERLEAVED(TSR_TYPE_Q5_0_R4, BlockQ5_0, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) {
        put_nibbles(block.qs, s, r4_nibbles(group + 24, row, s));
        // Bit of four codes: one byte of four, to one bit of four.
        const uint32_t bits = four(group + 8 + 4 * row) >> (2 * (s % 2) + s / 4 + 4 * (s / 2 % 2)) & kOneBit;
        block.qh[s / 2] |= static_cast<uint8_t>(((bits | bits >> 7 | bits >> 14 | bits >> 21) & 15) << (4 * (s % 2)));
    }
}

}  // namespace tessera::formats
