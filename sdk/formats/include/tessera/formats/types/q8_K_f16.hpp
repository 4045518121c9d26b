// q8_K_f16, rows of q8_k_r8 and q8_k_r16. Source: what ik_llama.cpp's own code makes of such rows, recorded in
// tests/formats.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// w = d * code
struct BlockQ8KF16 : BlockOf<TSR_TYPE_Q8_K_F16, kSuperBlock> {
    uint16_t d;
    int8_t qs[256];
};

inline void decode(const BlockQ8KF16& block, float* out) noexcept {
    const float d = f16_to_f32(block.d);
    for (int j = 0; j < kSuperBlock; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

TSR_INTERLEAVED(TSR_TYPE_Q8_K_R8, BlockQ8KF16, 8) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 64; ++i) put_four(block.qs + 4 * i, step_of<8>(group + 16, row, i));
}

// Codes lie 128 higher.
TSR_INTERLEAVED(TSR_TYPE_Q8_K_R16, BlockQ8KF16, 16) {
    using namespace interleaved_detail;
    block.d = two(group + 2 * row);
    for (int i = 0; i < 64; ++i) put_four(block.qs + 4 * i, step_of<16>(group + 32, row, i) ^ 0x80808080);
}

}  // namespace tessera::formats
