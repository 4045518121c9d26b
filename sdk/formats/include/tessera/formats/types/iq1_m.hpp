// iq1_m. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {

// As iq1_s. qh: a nibble a group, three upper bits of the entry and whether 1/8 is taken away. scales: four 16-bit
// fields with four scales of 3 bits for 16 elements each; their upper nibbles together are d.
struct BlockIq1M : BlockOf<TSR_TYPE_IQ1_M, kSuperBlock, Scales::kOf16> {
    uint8_t qs[32];
    uint8_t qh[16];
    uint16_t scales[4];
};

inline uint16_t iq1m_d(const BlockIq1M& block) noexcept {
    return static_cast<uint16_t>(block.scales[0] >> 12 | (block.scales[1] >> 8 & 0x00F0) |
                                 (block.scales[2] >> 4 & 0x0F00) | (block.scales[3] & 0xF000));
}

inline void set_scale(BlockIq1M& block, float d) noexcept {
    const uint16_t bits = f32_to_f16(d);
    for (int i = 0; i < 4; ++i)
        block.scales[i] = static_cast<uint16_t>((block.scales[i] & 0x0FFF) | (bits >> (4 * i) & 15) << 12);
}

// Scale of 16 elements `h` (0..15).
inline int iq1m_scale(const BlockIq1M& block, int h) noexcept {
    return block.scales[h / 4] >> (3 * (h % 4)) & 7;
}

inline void decode(const BlockIq1M& block, float* out) noexcept {
    const float d = f16_to_f32(iq1m_d(block));
    for (int g = 0; g < 32; ++g, out += 8) {
        const int nibble = iq1m_nibble(block.qh, g);
        decode_detail::shifted_group(d * static_cast<float>(2 * iq1m_scale(block, g / 2) + 1),
                                     kIq1Grid[iq1m_entry(block.qs[g], nibble)], nibble >> 3, out);
    }
}

}  // namespace tessera::formats
