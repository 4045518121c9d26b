// iq2_kl: five bits choose two neighbouring elements. Source: what ik_llama.cpp's own code makes of such rows, recorded
// in tests/formats.
#pragma once

#include <tessera/formats/block_codes.hpp>

namespace tessera::formats {

// w = row scale * (scale - 32) * level. Pair j of block b of 32: a nibble of qs[16 (b / 2) + j], the low one where b is
// even, and above it bit b of qh[j]. Scales: a nibble of scales_l[b % 4], the low one where b < 4, and bits 2 b of
// scales_h.
struct BlockIq2Kl : BlockOf<TSR_TYPE_IQ2_KL, kSuperBlock> {
    using RowScale = uint16_t;
    uint16_t scales_h;
    uint8_t scales_l[4];
    uint8_t qs[64];
    uint8_t qh[16];
};

// The levels of the first and of the second element of a pair.
inline constexpr int8_t kIq2klFirst[32] = {-63, -63, -40, -40, -40, -40, -23, -23, -23, -23, -23,
                                           -10, -10, -10, -10, 1,   1,   1,   1,   1,   13,  13,
                                           13,  13,  13,  28,  28,  28,  28,  28,  47,  47};
inline constexpr int8_t kIq2klSecond[32] = {-23, 13, -63, -10, 13,  47,  -40, -23, 1,  13,  28,  -63, 1,  13, 47,  -23,
                                            -10, 1,  13,  28,  -40, -23, -10, 1,   13, -63, -23, 1,   28, 47, -23, 13};

inline int iq2kl_scale(const BlockIq2Kl& block, int b) noexcept {
    return ((block.scales_l[b % 4] >> (4 * (b / 4)) & 15) | (block.scales_h >> (2 * b) & 3) << 4) - 32;
}

inline void codes_of(const BlockIq2Kl& block, float row_scale, int half, Codes16& to) noexcept {
    const int b = half / 2;
    const uint8_t* qs = block.qs + 16 * (b / 2) + 8 * (half % 2);
    const uint8_t* qh = block.qh + 8 * (half % 2);
    for (int j = 0; j < 8; ++j) {
        const int pair = (qs[j] >> (4 * (b % 2)) & 15) | (qh[j] >> b & 1) << 4;
        to.codes[2 * j] = kIq2klFirst[pair];
        to.codes[2 * j + 1] = kIq2klSecond[pair];
    }
    to.scale = row_scale * static_cast<float>(iq2kl_scale(block, b));
}

}  // namespace tessera::formats
