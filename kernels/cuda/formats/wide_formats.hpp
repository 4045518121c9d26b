// What the host and kernels know alike of products of one row (one_row.hpp). Freestanding.
#pragma once

#include <tessera/types.h>

namespace tessera::cuda_kernels {

// Formats with kernels in which a lane takes 64 elements at once, of several rows of the weight, where codes are int8.
constexpr bool has_wide_unit(tsr_type type) {
    return type == TSR_TYPE_Q4_0 || type == TSR_TYPE_Q8_0 || type == TSR_TYPE_Q4_K || type == TSR_TYPE_Q6_K ||
           type == TSR_TYPE_IQ4_XS;
}

// Which kernels of one row such a format has where codes are int8: rows of q4_K begin at multiples of 16 bytes, those
// of iq4_xs of 8, and none lie elsewhere (row_places.hpp).
constexpr bool reads_by_any(tsr_type type) {
    return type != TSR_TYPE_Q4_K && type != TSR_TYPE_IQ4_XS;
}
constexpr bool reads_by_8(tsr_type type) {
    return type != TSR_TYPE_Q4_K;
}

// Rows of the weight that a warp of such a kernel takes: the more, the fewer instructions a row, and the more
// registers.
constexpr int outputs_of_warp(tsr_type type) {
    return type == TSR_TYPE_Q8_0 ? 2 : 4;
}
// Feed-forward networks need more registers besides.
constexpr int ffn_outputs_of_warp(tsr_type type) {
    return type == TSR_TYPE_IQ4_XS ? 4 : 2;
}

// Whether products of few rows by mma (mma_units.hpp) read activations interleaved (reads_interleaved()), too.
constexpr bool mma_reads_interleaved(tsr_type type) {
    return type == TSR_TYPE_IQ4_NL || type == TSR_TYPE_IQ4_XS || type == TSR_TYPE_MXFP4;
}

// Whether tensor cores take one row, too (few_rows_mma.hpp), from 8.0 on: formats without kernels of one row by hand
// that have units for mma by hand.
constexpr bool mma_multiplies_one_row(tsr_type type) {
    return type == TSR_TYPE_Q5_K || type == TSR_TYPE_Q2_K || type == TSR_TYPE_Q3_K || type == TSR_TYPE_IQ4_NL ||
           type == TSR_TYPE_MXFP4;
}

// Bytes from a row of the weight to the next one that kernels of products take, at most: within a block of threads they
// find rows by offsets of 32 bits (one_row_mma.hpp).
inline constexpr unsigned kMaximumRowStride = 1u << 27;

}  // namespace tessera::cuda_kernels
