// iq1_kt: trellis codes (trellis.hpp), eight elements from 13 bits.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/levels.hpp>
#include <tessera/formats/trellis.hpp>

namespace tessera::formats {

// w = row scale * kIq4Values[scale] * code. Group g of eight of block b of 32 starts at ql[4 b + g], four bits of
// qh[4 (b % 4) + g] (the low ones where b < 4) and bit 4 + g of sh[b], whose low nibble is the scale.
struct BlockIq1Kt : BlockOf<TSR_TYPE_IQ1_KT, kSuperBlock> {
    using RowScale = float;
    uint8_t sh[8];
    uint8_t ql[32];
    uint8_t qh[16];
};

inline void codes_of(const BlockIq1Kt& block, float row_scale, int half, Codes16& to) noexcept {
    const int b = half / 2;
    for (int i = 0; i < 2; ++i) {
        const int g = 2 * (half % 2) + i;
        const uint32_t high = block.qh[4 * (b % 4) + g] >> (4 * (b / 4)) & 15u, top = block.sh[b] >> (4 + g) & 1u;
        const uint32_t start = (block.ql[4 * b + g] | high << 8 | top << 12) + kTrellisOffset;
        for (int n = 0; n < 8; ++n) to.codes[8 * i + n] = static_cast<int8_t>(trellis_code(start, n));
    }
    to.scale = row_scale * static_cast<float>(kIq4Values[block.sh[b] & 15]);
}

}  // namespace tessera::formats
