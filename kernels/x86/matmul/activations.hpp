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

namespace tessera::x86 {

inline constexpr int kTileRows = 4;

// How 32 elements are divided: into groups with a scale of the weights each, and into parts that are summed in 16 bits.
struct Division {
    int groups;  // 1 or 2
    int parts;   // 1, 2 or 4, not fewer than groups
    friend bool operator==(const Division&, const Division&) = default;
};

// For sums of a group in 32 bits, where `start` is that of its parts.
template <int kRows, Division kDivision, bool = (kDivision.parts > kDivision.groups)>
struct GroupStarts {};
template <int kRows, Division kDivision>
struct GroupStarts<kRows, kDivision, true> {
    int32_t group_start[kDivision.groups][kRows];  // -centre * sum of codes over the group
};

// One block of 32 elements of kRows rows.
template <int kRows, Division kDivision>
struct ActivationBlock : GroupStarts<kRows, kDivision> {
    int8_t codes[8][kRows][4];                 // [step][row][element 4 step + i]
    int16_t start[kDivision.parts][kRows][2];  // -centre * sum of codes with (element % 4) / 2 == i, over the part
    float scale[kRows];                        // x = scale * code
    float sum[kDivision.groups][kRows];        // scale * sum of codes over the group: times the weights' minimum
};

// How the activations for a weight format are prepared. Formats with equal kinds share them.
struct ActivationKind {
    Division division;
    int centre;
    friend bool operator==(const ActivationKind&, const ActivationKind&) = default;
};

// Of one row, in a tile of any width.
constexpr size_t row_block_bytes(Division division) noexcept {
    const int group_starts = division.parts > division.groups ? division.groups : 0;
    return 32 + static_cast<size_t>(division.parts) * 2 * sizeof(int16_t) +
           static_cast<size_t>(1 + division.groups) * sizeof(float) +
           static_cast<size_t>(group_starts) * sizeof(int32_t);
}

// Bytes of one row of `elements` (a multiple of 32), in a tile of any width.
inline size_t activation_row_bytes(ActivationKind kind, int64_t elements) noexcept {
    return static_cast<size_t>(elements / 32) * row_block_bytes(kind.division);
}

// Quantises one row into column `row` of a tile. x: [elements]. Not-a-number anywhere in a block makes the block's
// scale not-a-number, so it is not hidden.
template <class Isa, int kRows, Division kDivision>
inline void quantize_row(const float* x, int64_t elements, int centre, int row,
                         ActivationBlock<kRows, kDivision>* tile) noexcept {
    static_assert(sizeof *tile == kRows * row_block_bytes(kDivision));
    for (int64_t b = 0; b < elements / 32; ++b, x += 32) {
        ActivationBlock<kRows, kDivision>& block = tile[b];
        const float largest = Isa::largest_of_32(x);
        const float scale = largest / 127.0f;
        alignas(32) int8_t codes[32];
        // Below the smallest normal number the inverse would overflow; such a block counts as zero.
        Isa::quantize_32(x, largest > 0x1p-120f ? 127.0f / largest : 0.0f, codes);
        block.scale[row] = largest > 0x1p-120f || !(largest == largest) ? scale : 0.0f;
        for (int step = 0; step < 8; ++step) std::memcpy(block.codes[step][row], codes + 4 * step, 4);
        int16_t sums[4][2];
        Isa::pair_sums(codes, sums);
        // Of a share of the block.
        const auto sum_of = [&](int share, int shares, int i) {
            int sum = 0;
            for (int eight = share * 4 / shares; eight < (share + 1) * 4 / shares; ++eight) sum += sums[eight][i];
            return sum;
        };
        for (int p = 0; p < kDivision.parts; ++p) {
            for (int i = 0; i < 2; ++i)
                block.start[p][row][i] = static_cast<int16_t>(-centre * sum_of(p, kDivision.parts, i));
        }
        for (int g = 0; g < kDivision.groups; ++g) {
            const int sum = sum_of(g, kDivision.groups, 0) + sum_of(g, kDivision.groups, 1);
            block.sum[g][row] = scale * static_cast<float>(sum);
            if constexpr (kDivision.parts > kDivision.groups) block.group_start[g][row] = -centre * sum;
        }
    }
}

}  // namespace tessera::x86
