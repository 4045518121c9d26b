// Activations of products of few rows by mma (few_rows_mma.hpp) in the workspace. Freestanding, for kernels and the
// host.
#pragma once

#include <stdint.h>

namespace tessera::cuda_kernels {

// Eight rows together: int8 codes, then scales, then, where the weight's format has offsets, sums, as arguments.hpp
// says of each; all by 64 elements, which are two groups of 32, in the order in which a warp reads them. A lane takes
// 16 bytes of codes of a row: eight places of each group, in two words. Where codes are not interleaved, the second
// word is of elements 16 further. Rows and groups are written in twos, the last one with zeros if need be.
inline constexpr int kColumnRows = 8;

constexpr int64_t column_pairs(int64_t k) {
    return (k + 63) / 64;
}
constexpr int column_code(int row, int group, int place, bool interleaved) {
    const int lane = interleaved ? place / 8 : place % 16 / 4;
    const int byte = interleaved ? place % 8 : place / 16 * 4 + place % 4;
    return group / 2 * 512 + 64 * row + 16 * lane + 8 * (group % 2) + byte;
}
constexpr int64_t column_scale(int64_t k, int row, int group) {
    return 512 * column_pairs(k) + group / 2 * 64 + 8 * row + 4 * (group % 2);
}
// Of 16 elements.
constexpr int64_t column_sum(int64_t k, int row, int half_group) {
    return (512 + 64) * column_pairs(k) + half_group / 4 * 128 + 16 * row + 4 * (half_group % 4);
}
// Of eight rows.
constexpr int64_t column_bytes(int64_t k, bool sums) {
    return (512 + 64 + (sums ? 128 : 0)) * column_pairs(k);
}

}  // namespace tessera::cuda_kernels
