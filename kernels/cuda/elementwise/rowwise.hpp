// Arguments of ops that work on one row at a time; see arguments.hpp.
#pragma once

#include "../arguments.hpp"

namespace tessera::cuda_kernels {

// y = f(a, b) for rows of n floats, numbered by two inner dimensions and the slowest one, which the range bounds.
struct Pointwise {
    const void *a, *b;
    void* y;
    Rows rows;
    int64_t a_strides[3], b_strides[3],
        y_strides[3];  // of the inner dimensions, then of the slowest; b: 0 to broadcast
    int32_t inner[2];  // extents of the inner dimensions
    int32_t n, reserved;
};

// y = the gated linear unit of gate a and up b, numbered as `pairs` says.
struct Glu {
    Pointwise pairs;
    int32_t activation;  // cpu::Activation
    float limit, alpha;
    int32_t reserved;
};

// y[row][slot][i] = x[row][slot][i] + bias[ids[row][slot]][i]; of an id that is none x alone.
struct AddId {
    const void *x, *bias, *ids;
    void* y;
    Rows rows;
    int64_t x_slot, x_row, y_slot, y_row, ids_slot, ids_row, bias_row;
    int32_t n, slots, experts, reserved;
};

// y[row][i] = sum over slots of weights[row][slot] * x[row][slot][i].
struct WeightedSum {
    const void *x, *weights;
    void* y;
    Rows rows;
    int64_t x_slot, x_row, weights_slot, weights_row, y_row;
    int32_t n, slots;
};

inline constexpr int kRowThreads = 256;

// Elements of a row that a block works on before it goes on to the next row.
inline constexpr int kRowElements = 1024;

// Pairs of each head are rotated by position * frequency / factor.
struct Rope {
    const void *x, *positions;
    const void* factors;  // f32, of each pair; nullptr: 1
    void* y;
    Rows rows;
    int64_t x_head, x_row, y_head, y_row, position;
    int32_t heads, pairs;
    int32_t neox;     // 1: pair i is elements i and i + pairs; 0: 2i and 2i + 1
    float magnitude;  // of sine and cosine
    double frequencies[128];
};

// Each block of `block` elements, a power of two, of rows of n is multiplied with the orthonormal Hadamard matrix. Rows
// are numbered as in Pointwise.
struct Hadamard {
    const void* x;
    void* y;
    Rows rows;
    int64_t x_strides[3], y_strides[3];
    int32_t inner[2];
    int32_t n, block;
    int32_t part;  // elements that a block of threads works on: whole blocks, kHadamardElements at most
    float scale;   // 1 / sqrt(block)
};

// y = x * (1 + scale * ln(floor((position + offset) / length) + 1)), or x * scale without positions. Rows are numbered
// as in Pointwise.
struct ScaleByPosition {
    const void *x, *positions;
    void* y;
    Rows rows;
    int64_t x_strides[3], y_strides[3], position;
    int64_t length, offset;
    double scale;
    int32_t inner[2];
    int32_t n, reserved;
};

inline constexpr int kHadamardElements = 8192;

inline constexpr int kMaximumPairs = 128;
inline constexpr int kRopeThreads = 128;
inline constexpr int kRopeHeads = 8;  // of a block

}  // namespace tessera::cuda_kernels
