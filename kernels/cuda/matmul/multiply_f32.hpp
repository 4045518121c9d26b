// Products in f32 out of shared memory, by tiles of registers: a lane has R rows of C columns, so that a warp has 4 R
// rows of 8 C columns, and reads R + C values for R * C multiply-adds.
//
// Neighbouring lanes share a column, and lanes two apart a row: cards merge requests of 16 bytes of such lanes, so that
// one costs half of the time of 32 different addresses.
#pragma once

#include <tessera/cuda/simt.hpp>

namespace tessera::cuda_kernels {

// The lane's first row (0 to 3, the next one is 4 rows on) and its first column (0 to 7).
SIMT_DEVICE int lane_row() {
    const int l = static_cast<int>(simt::lane());
    return (l & 1) | l >> 4 << 1;
}
SIMT_DEVICE int lane_column() {
    return static_cast<int>(simt::lane()) >> 1 & 7;
}

// Rows of 16 elements in shared memory. 80 bytes are five times 16: eight rows of 16 bytes lie in all 32 banks.
inline constexpr int kDepth = 16, kDepthStride = kDepth + 4;

SIMT_DEVICE simt::Float4 float4_at(const float* from) {
    return *reinterpret_cast<const simt::Float4*>(from);
}

SIMT_DEVICE void add_product(float& sum, const simt::Float4& x, const simt::Float4& y) {
    sum = simt::fmaf(x.x, y.x, sum);
    sum = simt::fmaf(x.y, y.y, sum);
    sum = simt::fmaf(x.z, y.z, sum);
    sum = simt::fmaf(x.w, y.w, sum);
}

// sums[i][j] += the dot product of row 4 i from `a` and row 8 j from `b`, of kDepth elements each.
template <int kRows, int kColumns>
SIMT_DEVICE void multiply_rows(float (&sums)[kRows][kColumns], const float* a, const float* b) {
    using namespace simt;
    // Not unrolled: loads of all steps at once would take all registers. Of rows and columns the fewer are kept.
    SIMT_KEEP_LOOP
    for (int e = 0; e < kDepth; e += 4) {
        if constexpr (kRows <= kColumns) {
            Float4 x[kRows];
            SIMT_UNROLL
            for (int i = 0; i < kRows; ++i) x[i] = float4_at(a + 4 * i * kDepthStride + e);
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) {
                const Float4 y = float4_at(b + 8 * j * kDepthStride + e);
                SIMT_UNROLL
                for (int i = 0; i < kRows; ++i) add_product(sums[i][j], x[i], y);
            }
        } else {
            Float4 y[kColumns];
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) y[j] = float4_at(b + 8 * j * kDepthStride + e);
            SIMT_UNROLL
            for (int i = 0; i < kRows; ++i) {
                const Float4 x = float4_at(a + 4 * i * kDepthStride + e);
                SIMT_UNROLL
                for (int j = 0; j < kColumns; ++j) add_product(sums[i][j], x, y[j]);
            }
        }
    }
}

// sums[i][4 g + e] += the dot product of kTokens elements of row 4 i from `a` and of column 32 g + e from `b`, whose
// rows have kRowStride floats.
template <int kTokens, int kStride, int kRowStride, int kRows, int kColumns>
SIMT_DEVICE void multiply_columns(float (&sums)[kRows][kColumns], const float* a, const float* b) {
    using namespace simt;
    // With many columns two tokens at once are as many multiply-adds a load as four with few.
    constexpr int kAtOnce = kColumns > 8 ? 2 : 4;
    static_assert(kTokens % 4 == 0 && kColumns % 4 == 0);
    SIMT_KEEP_LOOP
    for (int t = 0; t < kTokens; t += kAtOnce) {
        float x[kRows][kAtOnce];
        SIMT_UNROLL
        for (int i = 0; i < kRows; ++i) {
            if constexpr (kAtOnce == 4) {
                const Float4 v = float4_at(a + 4 * i * kStride + t);
                x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
            } else {
                const auto v = *reinterpret_cast<const Float2*>(a + 4 * i * kStride + t);
                x[i][0] = v.x, x[i][1] = v.y;
            }
        }
        SIMT_UNROLL
        for (int u = 0; u < kAtOnce; ++u) {
            SIMT_UNROLL
            for (int g = 0; g < kColumns / 4; ++g) {
                const Float4 y = float4_at(b + (t + u) * kRowStride + 32 * g);
                SIMT_UNROLL
                for (int i = 0; i < kRows; ++i) {
                    sums[i][4 * g] = fmaf(x[i][u], y.x, sums[i][4 * g]);
                    sums[i][4 * g + 1] = fmaf(x[i][u], y.y, sums[i][4 * g + 1]);
                    sums[i][4 * g + 2] = fmaf(x[i][u], y.z, sums[i][4 * g + 2]);
                    sums[i][4 * g + 3] = fmaf(x[i][u], y.w, sums[i][4 * g + 3]);
                }
            }
        }
    }
}

}  // namespace tessera::cuda_kernels
