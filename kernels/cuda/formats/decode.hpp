// Arguments of what reads weights element by element: get_rows, products along the columns of a weight, convert and
// transpose; see arguments.hpp.
#pragma once

#include "../arguments.hpp"

namespace tessera::cuda_kernels {

// y[row] = the row ids[row] of a table.
struct GetRows {
    const void *table, *ids;
    void* y;
    Rows rows;
    int64_t table_row, id, y_row;  // strides
    int32_t n, count;
    int32_t type, reserved;
};

inline constexpr int kGetRowsThreads = 128;
inline constexpr int kGetRowsElements = 4;  // of a thread

// Rows of k elements in another type, or, transposed, their columns as rows of n. Types of the result: those that can
// be encoded.
struct Convert {
    const void* from;
    void* to;
    int64_t from_row, from_batch, from_outer, to_row, to_batch, to_outer;  // strides
    int32_t k, n;                                                          // elements of a row of `from`, and rows
    int32_t batch, outer;                                                  // further dimensions
    int32_t from_type, type;                                               // of `to` the second
    int32_t transposed, reserved;
};

inline constexpr int kConvertThreads = 128;
inline constexpr int kConvertElements = 32;  // of a thread

// Products along columns: a lane has 16 neighbouring outputs of kTransposedTile rows of x; the warps of a block share
// out the rows of the weight.
inline constexpr int kTransposedTile = 2;
inline constexpr int kTransposedWarps = 8;
inline constexpr int kTransposedOutputs = 32 * 16;  // of a block

}  // namespace tessera::cuda_kernels
