// Rows of x as products with q8_0 read them (arguments.hpp), once for all outputs. A warp a block of 32.
#pragma once

#include "rows.hpp"

namespace tessera::cuda_kernels {

// The last vector of 16 bytes of a row is read whole: what lies behind the last block is zero.
template <class T>
SIMT_DEVICE void clear_end(T* stream, int blocks) {
    const int end = blocks * kQ8Bytes, padded = static_cast<int>(round_up16(end));
    for (int i = end + static_cast<int>(simt::lane()); i < padded; i += 32) stream[i] = 0;
}

// Codes are x / d, rounded, with d = max |x| / 127 of a block; a block of zeros has d = 0.
SIMT_DEVICE void quantise_block(const Matmul& a, const float* x, void* row, int block, int blocks) {
    using namespace simt;
    auto* codes = static_cast<int8_t*>(row) + block * kQ8Bytes;
    auto* scales = at<float>(row, int8_codes_bytes(blocks));
    const float value = load_global<float>(x + block * kQ8Elements + static_cast<int>(lane()));
    const float d = warp_maximum(fabsf(value)) / 127.f;
    const float inverse = d > 0 ? 1.f / d : 0.f;
    codes[2 + lane()] = static_cast<int8_t>(convert_to_int(value * inverse));
    if (lane() < 2) codes[lane()] = 0;
    if (lane() == 0) scales[block] = d;
    if (block == blocks - 1) clear_end(static_cast<int8_t*>(row), blocks);
}

SIMT_DEVICE void spread_block(const Matmul& a, const float* x, void* row, int block, int blocks) {
    using namespace simt;
    auto* values = static_cast<float*>(row) + block * kQ8Bytes;
    values[2 + lane()] = load_global<float>(x + block * kQ8Elements + static_cast<int>(lane()));
    if (lane() < 2) values[lane()] = 0;
    if (block == blocks - 1) clear_end(static_cast<float*>(row), blocks);
}

// Grid: x the blocks of a row by kQuantiseWarps, y the maximum of rows or fewer, z the batch.
template <class Block>
SIMT_DEVICE void for_blocks(const Matmul& a, Block&& one) {
    using namespace simt;
    const RowRange range = actual_rows(a.rows);
    const int blocks = a.k / kQ8Elements;
    const int block = static_cast<int>(block_index().x) * kQuantiseWarps + static_cast<int>(warp());
    if (block >= blocks) return;
    const int batch = static_cast<int>(block_index().z);
    for (int row = static_cast<int>(block_index().y); row < range.end - range.begin;
         row += static_cast<int>(grid_size().y)) {
        const auto* x = at<float>(a.x, (range.begin + row) * a.x_row + batch * a.x_batch);
        one(a, x, at<char>(a.activations, (static_cast<int64_t>(row) * a.batch + batch) * a.activation_bytes), block,
            blocks);
    }
}

}  // namespace tessera::cuda_kernels
