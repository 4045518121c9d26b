// Feed-forward networks of few rows; host and device. See ffn_few.hpp.
#pragma once

#include "../arguments.hpp"

namespace tessera::cuda_kernels {

// Which experts a row has: by ids, or without them one matrix.
struct Chosen {
    const void* ids;  // i32, or nullptr
    int64_t ids_slot, ids_row;
    int32_t slots, experts;
};

// hidden[row][slot] = silu(gate x) * (up x), as the product with down reads it (arguments.hpp).
struct GateUp {
    const void *x, *gate, *up;  // x: activations
    void* hidden;
    Rows rows;
    Chosen chosen;
    int64_t x_row, gate_row, gate_expert, up_row, up_expert, hidden_row;
    int32_t k, hidden_elements;
    int32_t sums, interleaved;  // as the product with down reads hidden
};

// y[row] = the sum over slots of weight * (down hidden[row][slot]).
struct Down {
    const void *hidden, *weight;
    const void* factors;  // f32, or nullptr: 1
    void* y;
    Rows rows;
    Chosen chosen;
    int64_t hidden_row, weight_row, weight_expert, factors_slot, factors_row, y_row;
    int32_t k, n;
};

inline constexpr int kGateUpWarps = 8;  // of a block, which computes 32 hidden elements
inline constexpr int kDownWarps = 4;    // of a block; each computes an output

}  // namespace tessera::cuda_kernels
