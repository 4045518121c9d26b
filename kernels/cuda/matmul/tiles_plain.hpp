// What tiles without tensor cores have in common.
#pragma once

#include "tile_rows.hpp"

namespace tessera::cuda_kernels {

// Writes what a thread has: rows first_row to first_row + 7, columns `column`, + 16, + 32, + 48.
SIMT_DEVICE void write_plain_tile(const Tiles& a, const float (&sums)[8][4], const int64_t* targets, int first_row,
                                  int count, int first_column, int column) {
    using namespace simt;
    SIMT_UNROLL
    for (int i = 0; i < 8; ++i) {
        const bool real = first_row + i < count;
        auto* y = at<float>(a.y, real ? targets[first_row + i] : 0);
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j) {
            float value = sums[i][j];
            bool mine = real;
            if (a.paired) {  // the second of a pair is eight lanes on
                const float up = shuffle_xor(value, 8);
                value = silu_times(value, up);
                mine = mine && column % 16 < 8;
            }
            const int output = output_of_column(a, first_column, column + 16 * j);
            if (mine && output < a.n) y[output] = value;
        }
    }
}

}  // namespace tessera::cuda_kernels
