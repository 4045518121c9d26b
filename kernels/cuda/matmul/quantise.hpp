// Rows of x as products with block formats read them (arguments.hpp), once for all outputs. A warp 32 elements.
#pragma once

#include "../overlap.hpp"
#include "../rows.hpp"
#include "column_places.hpp"

namespace tessera::cuda_kernels {

// The sum of each half of a warp, in all its lanes.
SIMT_DEVICE float half_warp_sum(float value) {
    SIMT_UNROLL
    for (int mask = 8; mask > 0; mask /= 2) value += simt::shuffle_xor(value, mask);
    return value;
}

// 32 elements as int8, of which each lane has one. Codes are x / d, rounded, with d = max |x| / 127; if all are zero d
// = 0, and if one is a NaN d is infinite and codes are 0, of which products make NaNs.
struct Int8Element {
    int code;
    float d;

    SIMT_DEVICE explicit Int8Element(float value) {
        using namespace simt;
        // As whole numbers: NaNs are larger than infinity there, and a maximum of floats would lose them.
        const auto bits = bits_as<uint32_t>(fabsf(value)), most = bits_as<uint32_t>(infinity());
        const float magnitude = bits_as<float>(bits < most ? bits : most);
        d = warp_maximum(magnitude) / 127.f;
        const float inverse = d > 0 ? 1.f / d : 0.f;
        code = convert_to_int(value * inverse);
    }
    // The sum of the half of the warp that this lane is in.
    SIMT_DEVICE float sum() const { return d * half_warp_sum(static_cast<float>(code)); }  // of whole numbers: exact
};

SIMT_DEVICE int place_of(int element, bool interleaved) {
    return interleaved ? 2 * (element % 16) + element / 16 : element;
}

// Block `block` of a row of activations, of which each lane has an element.
SIMT_DEVICE void write_activation(float value, char* row, int block, int k, bool sums, bool interleaved) {
    using namespace simt;
    const int me = static_cast<int>(lane()), element = 32 * block + me;
    if constexpr (SIMT_ARCH >= 610) {
        const Int8Element x(value);
        row[32 * block + place_of(me, interleaved)] = static_cast<char>(x.code);
        if (me == 0) *at<float>(row, int8_scales_begin(k) + 4 * int64_t{block}) = x.d;
        if (!sums) return;
        const float sum = x.sum();
        if (me % 16 == 0) *at<float>(row, int8_sums_begin(k) + element / 4) = sum;
    } else {
        *at<float>(row, 4 * int64_t{element}) = value;
        if (!sums) return;
        const float sum = half_warp_sum(value);
        if (me % 16 == 0) *at<float>(row, float_sums_begin(k) + element / 4) = sum;
    }
}

// The same of row `row` of the eight at `rows`, as products by mma read it.
SIMT_DEVICE void write_column(float value, char* rows, int row, int block, int k, bool sums, bool interleaved) {
    const int me = static_cast<int>(simt::lane());
    const Int8Element x(value);
    rows[column_code(row, block, place_of(me, interleaved), interleaved)] = static_cast<char>(x.code);
    if (me == 0) *at<float>(rows, column_scale(k, row, block)) = x.d;
    if (!sums) return;
    const float sum = x.sum();
    if (me % 16 == 0) *at<float>(rows, column_sum(k, row, 2 * block + me / 16)) = sum;
}

// All blocks of the rows of a launch, by eight rows of a.activation_bytes bytes. Grid: x the blocks of a row, in twos,
// by kQuantiseWarps, y the maximum of rows or fewer, z the batch. value(range, row, byte): the float at that byte
// of row `row` from the first of the range on.
template <class Value>
SIMT_DEVICE void write_columns(const Matmul& a, Value&& value) {
    using namespace simt;
    const RowRange range = actual_rows(a.rows);
    const int block = static_cast<int>(block_index().x) * kQuantiseWarps + static_cast<int>(warp());
    if (block >= (a.k / 32 + 1) / 2 * 2) return;
    const int batch = static_cast<int>(block_index().z), rows = range.end - range.begin;
    for (int row = static_cast<int>(block_index().y); row < (rows + 1) / 2 * 2;
         row += static_cast<int>(grid_size().y)) {
        char* to =
            at<char>(a.activations, (static_cast<int64_t>(row / kColumnRows) * a.batch + batch) * a.activation_bytes);
        const bool has = row < rows && 32 * block < a.k;
        const int64_t byte = batch * a.x_batch + 4 * (32 * block + static_cast<int>(lane()));
        write_column(has ? value(range, row, byte) : 0.f, to, row % kColumnRows, block, a.k, a.sums != 0,
                     a.interleaved != 0);
    }
}

// All blocks of the rows of a launch. Grid: x the blocks of a row by kQuantiseWarps, y the maximum of rows or fewer, z
// the batch.
SIMT_DEVICE void write_activations(const Matmul& a) {
    using namespace simt;
    const RowRange range = awaited_rows(a.rows);
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
