// What the host hands to kernels: each takes one of these by value. Freestanding, for NVRTC, the emulator and the host.
// Addresses are the device's. Strides are in bytes.
#pragma once

#include <stdint.h>

namespace tessera::cuda_kernels {

// The layout of tsr_range.
struct RowRange {
    int32_t begin, end;
};

// The rows that a launch works on: of a bounded dimension the actual ones, which the device holds, else all.
struct Rows {
    const RowRange* bounded;  // nullptr: rows 0 to fixed
    int32_t fixed;
    int32_t reserved;
};

// y = x / sqrt(mean(x^2) + epsilon) * weight, for rows of n elements. Rows are numbered by two inner dimensions and the
// slowest one, which the range bounds.
struct RmsNorm {
    const void *x, *weight;
    void* y;
    Rows rows;
    int64_t x_strides[3], y_strides[3];  // of the inner dimensions, then of the slowest
    int32_t inner[2];                    // extents of the inner dimensions
    int32_t n;
    float epsilon;
    int32_t vectors;  // 1: every row begins at a multiple of 16 bytes and n is a multiple of 4
    int32_t reserved;
};

inline constexpr int kRmsNormThreads = 256;

// y[row][b][i] = the dot product of x[row][b] and weight[b][i], over k elements.
struct Matmul {
    const void *x, *weight;
    void* y;
    void* activations;  // workspace: rows of x as the product reads them, written by a launch before
    Rows rows;
    int64_t x_row, x_batch, weight_row, weight_batch, y_row, y_batch;
    int64_t activation_bytes;  // of one row of the workspace; rows are numbered row - begin, then by batch
    int32_t k, n, batch;
    int32_t vectors;      // of products of floats: 1 if rows of x and of the weight can be read 16 bytes at a time
    int32_t sums;         // of products with block formats: 1 if activations have sums
    int32_t interleaved;  // and 1 if codes of 32 elements are written as e0 e16 e1 e17 ..
    int32_t row_tiles;    // of products of few rows by tensor cores: how often a weight is read, by blocks in turn
    int32_t relative;     // of those: 1 if rows of y are numbered from the first of the actual ones on
};

// Activations from silu(x) * up, where x and up, which has x's strides, have rows that are numbered so.
struct GatedActivations {
    Matmul matmul;
    const void* up;
};

// y[row][slot][i] = the dot product of x[row], or of x[row][slot], and row i of the weight of expert ids[row][slot];
// zero for id -1, not-a-number for one that is no expert.
struct MatmulId {
    Matmul matmul;    // batch: slots of x, 1 if all slots of a row share it; weight_batch: from expert to expert;
                      // y_batch: from slot to slot
    const void* ids;  // i32
    int64_t ids_slot, ids_row;
    int32_t experts, reserved;
};

inline constexpr int kMatmulWarps = 4;    // of a block; each computes one output of all rows of a tile
inline constexpr int kMaximumTile = 8;    // rows of x that a launch reads the weight once for
inline constexpr int kQuantiseWarps = 4;  // of a block; each quantises one block of 32

// Activations of products with block formats: a row of k elements (a multiple of 32) in the workspace. As int8 codes,
// from compute capability 6.1 on: k codes, f32 scales of 32 each, and, where the weight's format has offsets, f32 sums
// of 16 each, the scale included. As f32, on 6.0: k values, and the same sums. Each part begins at a multiple of 16
// bytes.
constexpr int64_t round_up16(int64_t bytes) {
    return (bytes + 15) / 16 * 16;
}
constexpr int64_t int8_scales_begin(int64_t k) {
    return round_up16(k);
}
constexpr int64_t int8_sums_begin(int64_t k) {
    return int8_scales_begin(k) + round_up16(k / 32 * 4);
}
constexpr int64_t int8_activation_bytes(int64_t k, bool sums) {
    return int8_sums_begin(k) + (sums ? round_up16(k / 16 * 4) : 0);
}
constexpr int64_t float_sums_begin(int64_t k) {
    return round_up16(4 * k);
}
constexpr int64_t float_activation_bytes(int64_t k, bool sums) {
    return float_sums_begin(k) + (sums ? round_up16(k / 16 * 4) : 0);
}

}  // namespace tessera::cuda_kernels
