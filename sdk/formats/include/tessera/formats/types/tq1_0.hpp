// tq1_0: three levels, five to a byte. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/ternary.hpp>

namespace tessera::formats {

// w = d * (digit - 1). Digit n of bytes 0 .. 31 of qs is elements 32 n .., of bytes 32 .. 47 elements 160 + 16 n ..,
// of qh (four digits) 240 + 4 n ..
struct BlockTq1_0 : BlockOf<TSR_TYPE_TQ1_0, kSuperBlock> {
    uint8_t qs[48];
    uint8_t qh[4];
    uint16_t d;
};

inline void codes_of(const BlockTq1_0& block, int half, Codes16& to) noexcept {
    for (int i = 0; i < 16; ++i) {
        const int digit = half < 10   ? ternary_digit(block.qs[16 * (half % 2) + i], half / 2)
                          : half < 15 ? ternary_digit(block.qs[32 + i], half - 10)
                                      : ternary_digit(block.qh[i % 4], i / 4);
        to.codes[i] = static_cast<int8_t>(digit - 1);
    }
    to.scale = f16_to_f32(block.d);
}

}  // namespace tessera::formats
