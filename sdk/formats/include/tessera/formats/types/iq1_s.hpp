// iq1_s. Source: the public GGUF specification and the `gguf` Python package, whose
// dequantisation this follows bit for bit.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/groups.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {

// w = d * (2 scale + 1) * (code - 1 +- 1/8). qs: low bits of entries of kIq1Grid; qh per 32 elements: three upper bits
// of each group's entry, three of scale, and on top whether 1/8 is taken away.
struct BlockIq1S : BlockOf<TSR_TYPE_IQ1_S, kSuperBlock> {
    uint16_t d;
    uint8_t qs[32];
    uint16_t qh[8];
};

inline void decode(const BlockIq1S& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int g = 0; g < 32; ++g, out += 8) {
        const uint16_t qh = block.qh[g / 4];
        decode_detail::shifted_group(d * static_cast<float>(2 * (qh >> 12 & 7) + 1),
                                     kIq1Grid[iq1s_entry(block.qs[g], qh, g % 4)], qh >> 15, out);
    }
}

}  // namespace tessera::formats
