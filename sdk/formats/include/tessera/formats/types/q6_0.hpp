// q6_0. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * (code - 32); qh: byte j of 8 holds two bits each of elements j, j + 16, j + 8 and j + 24, from the low ones
// up
struct BlockQ6_0 : BlockOf<TSR_TYPE_Q6_0, kSmallBlock> {
    uint16_t d;
    uint8_t qh[8];
    uint8_t qs[16];
};

// Code of element j, 0 to 63.
inline int six_bit_code(const BlockQ6_0& block, int j) noexcept {
    const int i = j % 16, high = block.qh[i % 8] >> (4 * (i / 8));
    return j < 16 ? (block.qs[i] & 15) | (high & 3) << 4 : (block.qs[i] >> 4) | (high & 12) << 2;
}

inline void decode(const BlockQ6_0& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(six_bit_code(block, j) - 32);
}

// High bits of 32 six-bit codes: two of elements i and i + 16 to half a byte each.
inline void store_codes(BlockQ6_0& block, const uint8_t* codes) noexcept {
    for (int j = 0; j < 16; ++j) block.qs[j] = static_cast<uint8_t>((codes[j] & 15) | (codes[j + 16] & 15) << 4);
    for (int i = 0; i < 8; ++i) {
        const auto both = [&](int j) { return codes[j] >> 4 | codes[j + 16] >> 4 << 2; };
        block.qh[i] = static_cast<uint8_t>(both(i) | both(i + 8) << 4);
    }
}

inline void encode(const float* in, BlockQ6_0& block) noexcept {
    encode_detail::encode_centred(in, block, 32);
}

TSR_INTERLEAVED(TSR_TYPE_Q6_0_R4, BlockQ6_0, 4) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int s = 0; s < 8; ++s) {
        put_nibbles(block.qs, s, r4_nibbles(group + 40, row, s));
        const uint32_t high = four(group + 8 + 16 * (s / 4) + 4 * row) >> (2 * (s % 2) + 4 * (s / 2 % 2)) & kTwoBits;
        join_four(block.qh + 4 * (s % 2), high << (4 * (s / 2 % 2) + 2 * (s / 4)));
    }
}

}  // namespace tessera::formats
