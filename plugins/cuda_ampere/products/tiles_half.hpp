// Products of many rows by tensor cores with weights of f16 and bf16: 64 rows of 128 outputs a block, 32 outputs a
// warp, in steps of 32 elements. Activations come as halves (tiles.hpp): of f16 with a scale a row, of bf16 in two
// parts whose sum has 16 significant bits. Sums are in f32.
#pragma once

#include "write_tile.hpp"

namespace tessera::cuda_kernels {

// 32 elements of a row of the weight on their way through registers; zeros past the end.
struct WeightHalves {
    simt::UInt4 v[4];

    SIMT_DEVICE void load(const char* row, int first, int k) {
        using namespace simt;
        const char* from = row + 2 * static_cast<int64_t>(first);
        if (row && first + 32 <= k && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) v[i] = load_global<UInt4>(from + 16 * i);
            return;
        }
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            uint32_t words[4];
            SIMT_UNROLL
            for (int w = 0; w < 4; ++w) {
                const int e = 8 * i + 2 * w;
                words[w] = row && first + e < k ? load_global<uint16_t>(from + 2 * e) : 0u;
                if (row && first + e + 1 < k)
                    words[w] |= static_cast<uint32_t>(load_global<uint16_t>(from + 2 * e + 2)) << 16;
            }
            v[i] = UInt4{words[0], words[1], words[2], words[3]};
        }
    }
    SIMT_DEVICE void store(simt::UInt4* to) const {
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) to[i] = v[i];
    }
};

// Grid: x the tiles of rows, y the outputs by 128 (of pairs by 64), z the batch.
template <bool kBrain>
SIMT_DEVICE void multiply_tile_half(const Tiles& a) {
    using namespace simt;
    constexpr int kRows = kSmallTile, kOutputs = tile_outputs(TSR_TYPE_F16, kSmallTile), kParts = half_parts(kBrain);
    constexpr int kVectors =
        5;  // of 16 bytes of a row in shared memory: 32 elements, and 16 bytes so that the number is odd
    constexpr int kCopies = kRows * 4 * kParts / kTilesThreads;
    SIMT_SHARED(UInt4, x_shared, 2 * kParts * kRows * kVectors);
    SIMT_SHARED(UInt4, weight_shared, 2 * kOutputs * kVectors);
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(float, scales, kRows);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    const int steps = (a.k + kHalvesElements - 1) / kHalvesElements;
    if (t < tile.count) {
        targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);
        scales[t] =
            *at<float>(a.x, row_offset(a, tile, t, a.x_numbering, a.x_row, a.x_slot) + steps * kParts * int64_t{64});
    }
    uint32_t from[kCopies];  // in 16 bytes; rows past the last are zeros
    SIMT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
        const int vector = t + i * kTilesThreads, row = minimum(vector / (4 * kParts), tile.count - 1);
        from[i] = static_cast<uint32_t>(row_offset(a, tile, row, a.x_numbering, a.x_row, a.x_slot) / 16) +
                  static_cast<uint32_t>(vector % (4 * kParts));
    }
    const auto copy_x = [&](int step) {
        const char* x = at<char>(a.x, step * int64_t{64} * kParts);
        SIMT_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int vector = t + i * kTilesThreads, row = vector / (4 * kParts), part = vector / 4 % kParts;
            copy_async16(x_shared + ((step % 2 * kParts + part) * kRows + row) * kVectors + vector % 4,
                         x + static_cast<uint64_t>(from[i]) * 16, row < tile.count ? 16 : 0);
        }
        copy_async_commit();
    };
    const char* weight = weight_of_column(a, tile.matrix, first_column, t);
    WeightHalves ahead;

    const int l = static_cast<int>(lane()), column_warp = static_cast<int>(warp()) * 32;
    const int x_place = l % 16 * kVectors + l / 16,
              weight_place = (column_warp + l % 8 + l / 16 * 8) * kVectors + l / 8 % 2;
    float sums[4][4][4];
    SIMT_UNROLL
    for (int i = 0; i < 64; ++i) sums[i / 16][i / 4 % 4][i % 4] = 0;

    copy_x(0);
    ahead.load(weight, 0, a.k);
    ahead.store(weight_shared + t * kVectors);
    for (int step = 0; step < steps; ++step) {
        copy_async_wait<0>();
        sync_block();
        const bool more = step + 1 < steps;
        if (more) {
            copy_x(step + 1);
            ahead.load(weight, (step + 1) * kHalvesElements, a.k);
        }
        const UInt4* x = x_shared + step % 2 * kParts * kRows * kVectors + x_place;
        const UInt4* w = weight_shared + step % 2 * kOutputs * kVectors + weight_place;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t b[4][2];
            SIMT_UNROLL
            for (int j = 0; j < 4; j += 2) {
                uint32_t r[4];
                ldmatrix_x4(r, w + 8 * j * kVectors + 2 * half);
                b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (16 * i >= tile.count) break;
                SIMT_UNROLL
                for (int part = 0; part < kParts; ++part) {
                    uint32_t r[4];
                    ldmatrix_x4(r, x + (part * kRows + 16 * i) * kVectors + 2 * half);
                    SIMT_UNROLL
                    for (int j = 0; j < 4; ++j) {
                        if constexpr (kBrain) {
                            mma_bf16(sums[i][j], r, b[j]);
                        } else {
                            mma_f16(sums[i][j], r, b[j]);
                        }
                    }
                }
            }
        }
        if (more) ahead.store(weight_shared + ((step + 1) % 2 * kOutputs + t) * kVectors);
    }
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int row = 16 * i + e / 2 * 8 + l / 4;
            const float scale = row < tile.count ? scales[row] : 0.f;
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) sums[i][j][e] *= scale;
        }
    }
    write_mma_tile(a, sums, targets, tile.count, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
