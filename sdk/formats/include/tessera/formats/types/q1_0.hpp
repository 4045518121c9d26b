// q1_0: signs. Source: the public GGUF specification and ik_llama.cpp's code for it, recorded in tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>

namespace tessera::formats {

// w = d where bit j % 8 of byte j / 8 is set, else -d
struct BlockQ1_0 : BlockOf<TSR_TYPE_Q1_0, 128> {
    uint16_t d;
    uint8_t qs[16];
};

inline void codes_of(const BlockQ1_0& block, int half, Codes16& to) noexcept {
    for (int i = 0; i < 16; ++i) {
        to.codes[i] = static_cast<int8_t>(2 * (block.qs[2 * half + i / 8] >> (i % 8) & 1) - 1);
    }
    to.scale = f16_to_f32(block.d);
}

}  // namespace tessera::formats
