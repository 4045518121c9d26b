// Products along the columns of a weight, in f32: a warp computes 32 neighbouring outputs, so that its lanes read
// neighbouring elements of each row of the weight.
#include "rows.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

constexpr int kTile = kTransposedTile;

struct F32 {
    SIMT_DEVICE static float element(const char* row, int i) { return load_global<float>(row + 4 * int64_t{i}); }
};
struct F16 {
    SIMT_DEVICE static float element(const char* row, int i) {
        return to_float(load_global<half_t>(row + 2 * int64_t{i}));
    }
};
struct Bf16 {
    SIMT_DEVICE static float element(const char* row, int i) {
        return to_float(load_global<bfloat16_t>(row + 2 * int64_t{i}));
    }
};
struct Q8_0 {
    SIMT_DEVICE static float element(const char* row, int i) {
        const char* block = row + i / kQ8Elements * kQ8Bytes;
        return to_float(load_global<half_t>(block)) *
               static_cast<float>(load_global<int8_t>(block + 2 + i % kQ8Elements));
    }
};

// Grid: x the outputs by 32 * kMatmulWarps, y the maximum of rows by kTile or fewer, z the batch.
template <class Type>
SIMT_DEVICE void multiply_columns(const Matmul& a) {
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x * kMatmulWarps + warp()) * 32 + static_cast<int>(lane());
    if (output >= a.n) return;
    const int batch = static_cast<int>(block_index().z);
    const auto* weight = at<char>(a.weight, batch * a.weight_batch);
    for (int first = range.begin + static_cast<int>(block_index().y) * kTile; first < range.end;
         first += static_cast<int>(grid_size().y) * kTile) {
        const float* x[kTile];
        float sums[kTile] = {};
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            // Rows past the last are the last one again, and not written.
            x[t] = at<float>(a.x, minimum(first + t, range.end - 1) * a.x_row + batch * a.x_batch);
        }
        for (int k = 0; k < a.k; ++k) {
            const float w = Type::element(weight + k * a.weight_row, output);
            SIMT_UNROLL
            for (int t = 0; t < kTile; ++t) sums[t] = fmaf(w, load_global<float>(x[t] + k), sums[t]);
        }
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            if (first + t < range.end) at<float>(a.y, (first + t) * a.y_row + batch * a.y_batch)[output] = sums[t];
        }
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_transposed_f32(Matmul a) {
    multiply_columns<F32>(a);
}
SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_transposed_f16(Matmul a) {
    multiply_columns<F16>(a);
}
SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_transposed_bf16(Matmul a) {
    multiply_columns<Bf16>(a);
}
SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_transposed_q8_0(Matmul a) {
    multiply_columns<Q8_0>(a);
}
