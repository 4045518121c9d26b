// iq3_kt: magnitudes of trellis codes (trellis.hpp), eight elements from 16 bits, and signs.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/trellis.hpp>

namespace tessera::formats {

// w = row scale * scale * |code| with sign; starts and scales as in iq2_kt. Bit b of signs[l]: element l of block b of
// 32 is negative.
struct BlockIq3Kt : BlockOf<TSR_TYPE_IQ3_KT, kSuperBlock> {
    using RowScale = float;
    uint8_t scales[4];
    uint16_t starts[32];
    uint8_t signs[32];
};

inline void codes_of(const BlockIq3Kt& block, float row_scale, int half, Codes16& to) noexcept {
    const int b = half / 2;
    for (int i = 0; i < 16; ++i) {
        const int code = trellis_code(block.starts[2 * half + i / 8] + kTrellisOffset, i % 8);
        const int magnitude = code < 0 ? -code : code;
        const int sign = -(block.signs[16 * (half % 2) + i] >> b & 1);  // all bits of it
        to.codes[i] = static_cast<int8_t>((magnitude ^ sign) - sign);
    }
    to.scale = row_scale * static_cast<float>(block.scales[b % 4] >> (4 * (b / 4)) & 15);
}

}  // namespace tessera::formats
