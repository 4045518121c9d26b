// rms_norm: a block a row. x and y may be the same memory: a thread writes the elements that it alone read.
#include "../overlap.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

constexpr int kWarps = kRmsNormThreads / 32;

// The sum over the block, in every thread.
SIMT_DEVICE float block_sum(float value) {
    SIMT_SHARED(float, sums, kWarps);
    value = warp_sum(value);
    sync_block();  // the sums of the row before have been read
    if (lane() == 0) sums[warp()] = value;
    sync_block();
    float sum = 0;
    SIMT_UNROLL
    for (int i = 0; i < kWarps; ++i) sum += sums[i];
    return sum;
}

SIMT_DEVICE void norm_vectors(const Float4* x, const Float4* weight, Float4* y, int n, float epsilon) {
    const int vectors = n / 4, first = static_cast<int>(thread_index().x);
    float squares = 0;
    for (int i = first; i < vectors; i += kRmsNormThreads) {
        const Float4 v = x[i];
        squares += v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
    }
    const float scale = 1.f / sqrtf(block_sum(squares) / static_cast<float>(n) + epsilon);
    for (int i = first; i < vectors; i += kRmsNormThreads) {
        const Float4 v = x[i], w = load_global<Float4>(weight + i);
        y[i] = Float4{v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w};
    }
}

// The same for rows that the block's registers hold: x is read once, and beside it the weight where there is room.
template <int kVectors, bool kKeepWeight>
SIMT_DEVICE void norm_kept_vectors(const Float4* x, const Float4* weight, Float4* y, int n, float epsilon) {
    const int vectors = n / 4, first = static_cast<int>(thread_index().x);
    Float4 of_x[kVectors] = {}, of_weight[kVectors] = {};
    SIMT_UNROLL
    for (int k = 0; k < kVectors; ++k) {
        const int i = first + k * kRmsNormThreads;
        if (i >= vectors) continue;
        of_x[k] = x[i];
        if constexpr (kKeepWeight) of_weight[k] = load_global<Float4>(weight + i);
    }
    float squares = 0;
    SIMT_UNROLL
    for (int k = 0; k < kVectors; ++k) {
        const Float4 v = of_x[k];
        squares += v.x * v.x + v.y * v.y + (v.z * v.z + v.w * v.w);
    }
    const float scale = 1.f / sqrtf(block_sum(squares) / static_cast<float>(n) + epsilon);
    SIMT_UNROLL
    for (int k = 0; k < kVectors; ++k) {
        const int i = first + k * kRmsNormThreads;
        if (i >= vectors) continue;
        const Float4 v = of_x[k], w = kKeepWeight ? of_weight[k] : load_global<Float4>(weight + i);
        y[i] = Float4{v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w};
    }
}

SIMT_DEVICE void norm_elements(const float* x, const float* weight, float* y, int n, float epsilon) {
    const int first = static_cast<int>(thread_index().x);
    float squares = 0;
    for (int i = first; i < n; i += kRmsNormThreads) squares += x[i] * x[i];
    const float scale = 1.f / sqrtf(block_sum(squares) / static_cast<float>(n) + epsilon);
    for (int i = first; i < n; i += kRmsNormThreads) y[i] = x[i] * scale * load_global<float>(weight + i);
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the inner rows, y the maximum of rows of the slowest dimension, or fewer.
SIMT_KERNEL(kRmsNormThreads, 3) rms_norm(RmsNorm a) {
    const RowRange range = awaited_rows(a.rows);
    const int inner = static_cast<int>(simt::block_index().x);
    const int64_t i = inner % a.inner[0], j = inner / a.inner[0];
    for (int row = range.begin + static_cast<int>(simt::block_index().y); row < range.end;
         row += static_cast<int>(simt::grid_size().y)) {
        const int64_t from = i * a.x_strides[0] + j * a.x_strides[1] + row * a.x_strides[2];
        const int64_t to = i * a.y_strides[0] + j * a.y_strides[1] + row * a.y_strides[2];
        const auto *x = at<simt::Float4>(a.x, from), *weight = at<simt::Float4>(a.weight, 0);
        auto* y = at<simt::Float4>(a.y, to);
        if (a.vectors && a.n <= 4 * 2 * kRmsNormThreads) {
            norm_kept_vectors<2, true>(x, weight, y, a.n, a.epsilon);
        } else if (a.vectors && a.n <= 4 * 8 * kRmsNormThreads) {
            norm_kept_vectors<8, false>(x, weight, y, a.n, a.epsilon);
        } else if (a.vectors) {
            norm_vectors(x, weight, y, a.n, a.epsilon);
        } else {
            norm_elements(at<float>(a.x, from), at<float>(a.weight, 0), at<float>(a.y, to), a.n, a.epsilon);
        }
    }
}
