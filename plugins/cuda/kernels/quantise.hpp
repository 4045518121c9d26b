// Rows of x as products with block formats read them (arguments.hpp), once for all outputs. A warp 32 elements.
#pragma once

#include "rows.hpp"

namespace tessera::cuda_kernels {

// The sum of each half of a warp, in all its lanes.
SIMT_DEVICE float half_warp_sum(float value) {
    SIMT_UNROLL
    for (int mask = 8; mask > 0; mask /= 2) value += simt::shuffle_xor(value, mask);
    return value;
}

// Codes are x / d, rounded, with d = max |x| / 127 of 32 elements; if all are zero d = 0.
SIMT_DEVICE void quantise_block(const Matmul& a, const float* x, char* row, int block) {
    using namespace simt;
    const int element = 32 * block + static_cast<int>(lane());
    const float value = load_global<float>(x + element);
    const float d = warp_maximum(fabsf(value)) / 127.f;
    const float inverse = d > 0 ? 1.f / d : 0.f;
    const int code = convert_to_int(value * inverse);
    const int me = static_cast<int>(lane()), place = a.interleaved ? 2 * (me % 16) + me / 16 : me;
    row[32 * block + place] = static_cast<char>(code);
    if (lane() == 0) *at<float>(row, int8_scales_begin(a.k) + 4 * int64_t{block}) = d;
    if (!a.sums) return;
    const float sum = half_warp_sum(static_cast<float>(code));  // of whole numbers: exact
    if (lane() % 16 == 0) *at<float>(row, int8_sums_begin(a.k) + element / 4) = d * sum;
}

SIMT_DEVICE void copy_block(const Matmul& a, const float* x, char* row, int block) {
    using namespace simt;
    const int element = 32 * block + static_cast<int>(lane());
    const float value = load_global<float>(x + element);
    *at<float>(row, 4 * int64_t{element}) = value;
    if (!a.sums) return;
    const float sum = half_warp_sum(value);
    if (lane() % 16 == 0) *at<float>(row, float_sums_begin(a.k) + element / 4) = sum;
}

// All blocks of the rows of a launch. Grid: x the blocks of a row by kQuantiseWarps, y the maximum of rows or fewer, z
// the batch.
SIMT_DEVICE void write_activations(const Matmul& a) {
    using namespace simt;
    const RowRange range = actual_rows(a.rows);
    const int block = static_cast<int>(block_index().x) * kQuantiseWarps + static_cast<int>(warp());
    if (block >= a.k / 32) return;
    const int batch = static_cast<int>(block_index().z);
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        const auto* x = at<float>(a.x, (range.begin + row) * a.x_row + batch * a.x_batch);
        char* to = at<char>(a.activations, (static_cast<int64_t>(row) * a.batch + batch) * a.activation_bytes);
        if constexpr (SIMT_ARCH >= 610) {
            quantise_block(a, x, to, block);
        } else {
            copy_block(a, x, to, block);
        }
    }
}

}  // namespace tessera::cuda_kernels
