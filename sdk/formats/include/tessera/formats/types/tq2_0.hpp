// tq2_0: three levels in two bits each. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block_codes.hpp>

namespace tessera::formats {

// w = d * (code - 1); qs as in q2_K
struct BlockTq2_0 : BlockOf<TSR_TYPE_TQ2_0, kSuperBlock> {
    uint8_t qs[64];
    uint16_t d;
};

inline void codes_of(const BlockTq2_0& block, int half, Codes16& to) noexcept {
    const uint8_t* qs = block.qs + 32 * (half / 8) + 16 * (half % 2);
    for (int i = 0; i < 16; ++i) to.codes[i] = static_cast<int8_t>((qs[i] >> (2 * (half / 2 % 4)) & 3) - 1);
    to.scale = f16_to_f32(block.d);
}

}  // namespace tessera::formats
