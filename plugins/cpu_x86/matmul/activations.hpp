// Activations as the integer kernels read them: rows of f32 quantised once, in blocks of 32, to signed bytes.
//
// Up to kTileRows rows ("columns" of the product) are interleaved in a tile, so that a micro-kernel reads one stream.
// The codes of the weights are unsigned; their centre is subtracted by starting every 16-bit sum at
// -centre * (sum of the activations' codes), which costs nothing per product.
#pragma once

#include "../kit.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::cpu_x86 {

inline constexpr int kTileRows = 4;

// One block of 32 elements of kRows rows. kGroups is 1 if the weights have a scale for 32 elements, 2 if for 16.
template <int kRows, int kGroups>
struct ActivationBlock {
    int8_t codes[8][kRows][4];         // [step][row][element 4 step + i]
    int16_t start[kGroups][kRows][2];  // -centre * sum of codes with (element % 4) / 2 == i, over the group
    float scale[kRows];                // x = scale * code
    float sum[kGroups][kRows];         // scale * sum of codes over the group: multiplied with the weights' minimum
};

// How the activations for a weight format are prepared. Formats with equal kinds share them.
struct ActivationKind {
    int groups;
    int centre;
    friend bool operator==(const ActivationKind&, const ActivationKind&) = default;
};

template <int kGroups>
inline constexpr size_t kRowBlockBytes = sizeof(ActivationBlock<1, kGroups>);
static_assert(sizeof(ActivationBlock<4, 1>) == 4 * kRowBlockBytes<1> &&
              sizeof(ActivationBlock<4, 2>) == 4 * kRowBlockBytes<2>);

// Bytes of one row of `elements` (a multiple of 32), in a tile of any width.
inline size_t activation_row_bytes(ActivationKind kind, int64_t elements) noexcept {
    return static_cast<size_t>(elements / 32) * (kind.groups == 1 ? kRowBlockBytes<1> : kRowBlockBytes<2>);
}

// Quantises one row into column `row` of a tile. x: [elements]. Not-a-number anywhere in a block makes the block's
// scale not-a-number, so it is not hidden.
template <class Isa, int kRows, int kGroups>
inline void quantize_row(const float* x, int64_t elements, int centre, int row,
                         ActivationBlock<kRows, kGroups>* tile) noexcept {
    for (int64_t b = 0; b < elements / 32; ++b, x += 32) {
        ActivationBlock<kRows, kGroups>& block = tile[b];
        const float largest = Isa::largest_of_32(x);
        const float scale = largest / 127.0f;
        alignas(32) int8_t codes[32];
        // Below the smallest normal number the inverse would overflow; such a block counts as zero.
        Isa::quantize_32(x, largest > 0x1p-120f ? 127.0f / largest : 0.0f, codes);
        block.scale[row] = largest > 0x1p-120f || !(largest == largest) ? scale : 0.0f;
        for (int step = 0; step < 8; ++step) std::memcpy(block.codes[step][row], codes + 4 * step, 4);
        int16_t sums[2][2];
        Isa::pair_sums(codes, sums);
        for (int i = 0; i < 2 && kGroups == 1; ++i) sums[0][i] = static_cast<int16_t>(sums[0][i] + sums[1][i]);
        for (int g = 0; g < kGroups; ++g) {
            block.start[g][row][0] = static_cast<int16_t>(-centre * sums[g][0]);
            block.start[g][row][1] = static_cast<int16_t>(-centre * sums[g][1]);
            block.sum[g][row] = scale * static_cast<float>(sums[g][0] + sums[g][1]);
        }
    }
}

}  // namespace tessera::cpu_x86
