// iq2_kt: trellis codes (trellis.hpp), eight elements from 16 bits.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/levels.hpp>
#include <tessera/formats/trellis.hpp>

namespace tessera::formats {

// w = row scale * kIq4Values[scale] * code; a start for eight elements in their order. Scales of 32: nibbles, as in
// iq3_ks.
struct BlockIq2Kt : BlockOf<TSR_TYPE_IQ2_KT, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[4];
    uint16_t starts[32];
};

inline void codes_of(const BlockIq2Kt& block, float row_scale, int half, Codes16& to) noexcept {
    for (int i = 0; i < 2; ++i) {
        const uint32_t start = block.starts[2 * half + i] + kTrellisOffset;
        for (int n = 0; n < 8; ++n) to.codes[8 * i + n] = static_cast<int8_t>(trellis_code(start, n));
    }
    const int b = half / 2;
    to.scale = row_scale * static_cast<float>(kIq4Values[block.scales[b % 4] >> (4 * (b / 4)) & 15]);
}

}  // namespace tessera::formats
