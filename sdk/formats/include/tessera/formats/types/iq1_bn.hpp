// iq1_bn: three levels, five to a byte, under the scale of a row (BitNet). Source: what ik_llama.cpp's own code makes
// of such rows, recorded in tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/ternary.hpp>

namespace tessera::formats {

// w = row scale * (digit - 1). 16 elements are three bytes of ql, the last digit of each first, and digit 4 - h of
// extra.
struct BlockIq1Bn : BlockOf<TSR_TYPE_IQ1_BN, 64> {
    using RowScale = uint16_t;
    uint8_t ql[12];
    uint8_t extra;
};

inline void codes_of(const BlockIq1Bn& block, float row_scale, int half, Codes16& to) noexcept {
    for (int i = 0; i < 15; ++i) {
        to.codes[i] = static_cast<int8_t>(ternary_digit(block.ql[3 * half + i / 5], 4 - i % 5) - 1);
    }
    to.codes[15] = static_cast<int8_t>(ternary_digit(block.extra, 4 - half) - 1);
    to.scale = row_scale;
}

}  // namespace tessera::formats
