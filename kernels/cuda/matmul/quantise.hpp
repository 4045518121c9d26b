// Rows of x as products with block formats read them (arguments.hpp), once for all outputs. A warp 32 elements.
#pragma once

#include "../rows.hpp"

namespace tessera::cuda_kernels {

// The sum of each half of a warp, in all its lanes.
SIMT_DEVICE float half_warp_sum(float value) {
    SIMT_UNROLL
    for (int mask = 8; mask > 0; mask /= 2) value += simt::shuffle_xor(value, mask);
    return value;
}

// Block `block` of a row of activations, of which each lane has an element. Codes are x / d, rounded, with d = max |x|
// / 127 of 32 elements; if all are zero d = 0, and if one is a NaN d is infinite and codes are 0, of which products
// make NaNs.
SIMT_DEVICE void write_activation(float value, char* row, int block, int k, bool sums, bool interleaved) {
    using namespace simt;
    const int me = static_cast<int>(lane()), element = 32 * block + me;
    if constexpr (SIMT_ARCH >= 610) {
        // As whole numbers: NaNs are larger than infinity there, and a maximum of floats would lose them.
        const auto bits = bits_as<uint32_t>(fabsf(value)), most = bits_as<uint32_t>(infinity());
        const float magnitude = bits_as<float>(bits < most ? bits : most);
        const float d = warp_maximum(magnitude) / 127.f;
        const float inverse = d > 0 ? 1.f / d : 0.f;
        const int code = convert_to_int(value * inverse), place = interleaved ? 2 * (me % 16) + me / 16 : me;
        row[32 * block + place] = static_cast<char>(code);
        if (me == 0) *at<float>(row, int8_scales_begin(k) + 4 * int64_t{block}) = d;
        if (!sums) return;
        const float sum = half_warp_sum(static_cast<float>(code));  // of whole numbers: exact
        if (me % 16 == 0) *at<float>(row, int8_sums_begin(k) + element / 4) = d * sum;
    } else {
        *at<float>(row, 4 * int64_t{element}) = value;
        if (!sums) return;
        const float sum = half_warp_sum(value);
        if (me % 16 == 0) *at<float>(row, float_sums_begin(k) + element / 4) = sum;
    }
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
        write_activation(load_global<float>(x + 32 * block + lane()), to, block, a.k, a.sums != 0, a.interleaved != 0);
    }
}

}  // namespace tessera::cuda_kernels
