// Writes what a warp has of a tile by tensor cores.
#pragma once

#include "kernels/cuda/matmul/tile_rows.hpp"

namespace tessera::cuda_kernels {

// 64 rows of 8 * kColumns outputs as mma has them: by 16 rows, by 8 outputs. `first`: this warp's first column; `to`:
// where its rows of y begin.
template <int kColumns>
SIMT_DEVICE void write_mma_tile(const Tiles& a, const float (&sums)[4][kColumns][4], const int64_t* to, int count,
                                int first_column, int first) {
    using namespace simt;
    const auto l = static_cast<int>(lane());
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int h = 0; h < 2; ++h) {
            const int row = 16 * i + 8 * h + l / 4;
            if (row >= count) continue;
            auto* y = at<float>(a.y, to[row]);
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) {
                if (a.paired && j % 2 == 1) continue;
                SIMT_UNROLL
                for (int e = 0; e < 2; ++e) {
                    const int output = output_of_column(a, first_column, first + 8 * j + l % 4 * 2 + e);
                    const float value = sums[i][j][2 * h + e];
                    if (output < a.n) y[output] = a.paired ? silu_times(value, sums[i][j | 1][2 * h + e]) : value;
                }
            }
        }
    }
}

}  // namespace tessera::cuda_kernels
