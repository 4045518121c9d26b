// iq4_kt: trellis codes (trellis.hpp), four elements from 15 bits.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/trellis.hpp>

namespace tessera::formats {

// w = row scale * (scale - 64) * code. heads[b] of block b of 32, a little-endian number of 32 bits: which set of codes
// in bit 0, seven bits of scale, three bits for each group of four. Group i (0 .. 63) starts at ql[i], a nibble of
// qh[i % 32] (the low one where i < 32) and those three bits.
struct BlockIq4Kt : BlockOf<TSR_TYPE_IQ4_KT, kSuperBlock> {
    using RowScale = float;
    uint8_t heads[8][4];
    uint8_t ql[64];
    uint8_t qh[32];
};

// 15 bits of group `g`.
inline uint32_t iq4kt_start(const BlockIq4Kt& block, int g) noexcept {
    const uint8_t* head = block.heads[g / 8];
    const uint32_t three = head[1] | static_cast<uint32_t>(head[2]) << 8 | static_cast<uint32_t>(head[3]) << 16;
    const uint32_t high = block.qh[g % 32] >> (4 * (g / 32)) & 15u;
    return block.ql[g] | high << 8 | (three >> (3 * (g % 8)) & 7u) << 12;
}

inline void codes_of(const BlockIq4Kt& block, float row_scale, int half, Codes16& to) noexcept {
    const uint8_t* head = block.heads[half / 2];
    const uint32_t offset = kTrellisOffset + (head[0] & 1u) * 32768u;
    for (int i = 0; i < 4; ++i) {
        const uint32_t start = iq4kt_start(block, 4 * half + i) + offset;
        for (int n = 0; n < 4; ++n) to.codes[4 * i + n] = static_cast<int8_t>(trellis_code(start, n));
    }
    to.scale = row_scale * static_cast<float>((head[0] >> 1) - 64);
}

}  // namespace tessera::formats
