// Products of many rows by dp4a: 64 rows of 64 outputs a block, 8 rows of 4 outputs a thread. Segments of activations
// and decoded weights are loaded into registers a step of 64 elements ahead, and put into the other half of shared
// memory.
#pragma once

#include "kernels/cuda/matmul/tile_rows.hpp"
#include "kernels/cuda/matmul/tiles_plain.hpp"
#include "kernels/cuda/matmul/weight_segment.hpp"

namespace tessera::cuda_kernels {

template <int kType>
struct Dp4aTile {
    using F = Format<kType>;
    using Segment = WeightSegment<F>;
    static constexpr int kScales = 32 / F::kScaleElements;
    float sums[8][4];

    // x: the first of this thread's 8 rows; weights: the first of its outputs, which are 16 apart.
    SIMT_DEVICE void multiply(const char* x, const char* weights) {
        using namespace simt;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            SIMT_UNROLL
            for (int s = 0; s < kScales; ++s) {
                int c[8][4];
                SIMT_UNROLL
                for (int q = s; q < 2; q += kScales) {
                    UInt4 w[4];
                    SIMT_UNROLL
                    for (int j = 0; j < 4; ++j)
                        w[j] = *at<UInt4>(weights, 16 * j * Segment::kBytes + 32 * half + 16 * q);
                    SIMT_UNROLL
                    for (int i = 0; i < 8; ++i) {
                        const UInt4 v = *at<UInt4>(x, i * kSegmentBytes + 32 * half + 16 * q);
                        SIMT_UNROLL
                        for (int j = 0; j < 4; ++j) {
                            int sum = q == s ? kMagicBits : c[i][j];
                            sum = dp4a(static_cast<int>(w[j].x), static_cast<int>(v.x), sum);
                            sum = dp4a(static_cast<int>(w[j].y), static_cast<int>(v.y), sum);
                            sum = dp4a(static_cast<int>(w[j].z), static_cast<int>(v.z), sum);
                            c[i][j] = dp4a(static_cast<int>(w[j].w), static_cast<int>(v.w), sum);
                        }
                    }
                }
                float scale[4], offset[4];
                SIMT_UNROLL
                for (int j = 0; j < 4; ++j) {
                    const char* row = weights + 16 * j * Segment::kBytes + 4 * (kScales * half + s);
                    scale[j] = *at<float>(row, kSegmentElements);
                    if constexpr (F::kOffsets) offset[j] = *at<float>(row, Segment::kOffset);
                }
                SIMT_UNROLL
                for (int i = 0; i < 8; ++i) {
                    const char* row = x + i * kSegmentBytes;
                    const float d = *at<float>(row, kSegmentScales + 4 * half), m = -kMagic * d;
                    SIMT_UNROLL
                    for (int j = 0; j < 4; ++j)
                        sums[i][j] = fmaf(fmaf(bits_as<float>(c[i][j]), d, m), scale[j], sums[i][j]);
                    if constexpr (F::kOffsets) {
                        const float of = sum_of_codes<F::kScaleElements>(row, kScales * half + s, d);
                        SIMT_UNROLL
                        for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(offset[j], of, sums[i][j]);
                    }
                }
            }
        }
    }
};

// Grid: x the tiles of rows, y the outputs by those of a tile (of pairs by half of them), z the batch.
template <int kType>
SIMT_DEVICE void multiply_tile_dp4a(const Tiles& a) {
    using namespace simt;
    using Product = Dp4aTile<kType>;
    constexpr int kRows = kPlainTile, kOutputs = kPlainTileOutputs, kVectors = kSegmentBytes / 16;
    constexpr int kWeightBytes = Product::Segment::kBytes,
                  kCopies = (kRows * kVectors + kTilesThreads - 1) / kTilesThreads;
    SIMT_SHARED(UInt4, x_shared, 2 * kRows * kVectors);
    SIMT_SHARED(UInt4, weight_shared, 2 * kOutputs * kWeightBytes / 16);
    SIMT_SHARED(int64_t, targets, kRows);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    if (t < tile.count) targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);

    int from[kCopies];  // in 16 bytes; -1: a row of zeros
    SIMT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
        const int vector = t + i * kTilesThreads, row = vector / kVectors;
        from[i] = row < tile.count ? static_cast<int>(row_offset(a, tile, row, a.x_numbering, a.x_row, a.x_slot) / 16) +
                                         vector % kVectors
                                   : -1;
    }
    const int steps = static_cast<int>(segments_of(a.k)), sub_blocks = a.k / kSubBlockElements;
    UInt4 x_ahead[kCopies];
    const auto load_x = [&](int step) {
        SIMT_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            x_ahead[i] =
                from[i] < 0 ? UInt4{0, 0, 0, 0}
                            : load_global<UInt4>(at<char>(a.x, (from[i] + static_cast<int64_t>(step) * kVectors) * 16));
        }
    };
    const auto store_x = [&](int step) {
        SIMT_UNROLL
        for (int i = 0; i < kCopies; ++i) {
            const int vector = t + i * kTilesThreads;
            if (vector < kRows * kVectors) x_shared[step % 2 * kRows * kVectors + vector] = x_ahead[i];
        }
    };
    const int column = t / 2, sub_block = t % 2 * 2;
    const char* weight = weight_of_column(a, tile.matrix, first_column, column);
    const float row_scale = weight ? Product::F::row_scale(weight) : 0.f;
    if (weight) weight += Product::F::kPrefixBytes;
    WeightSubBlocks<kType, 2> ahead;
    const auto weight_at = [&](int step, int row) {
        return at<char>(static_cast<void*>(weight_shared), (step % 2 * kOutputs + row) * kWeightBytes);
    };

    const int first_row = t / 16 * 8, my_column = t % 16;
    const bool busy = static_cast<int>(warp()) * 16 < tile.count;
    Product product;
    SIMT_UNROLL
    for (int i = 0; i < 32; ++i) product.sums[i / 4][i % 4] = 0;

    load_x(0);
    ahead.load(weight, row_scale, 0, sub_block, sub_blocks);
    store_x(0);
    ahead.store(weight_at(0, column), sub_block);
    for (int step = 0; step < steps; ++step) {
        sync_block();
        const bool more = step + 1 < steps;
        if (more) {
            load_x(step + 1);
            ahead.load(weight, row_scale, step + 1, sub_block, sub_blocks);
        }
        if (busy)
            product.multiply(reinterpret_cast<const char*>(x_shared + (step % 2 * kRows + first_row) * kVectors),
                             weight_at(step, my_column));
        if (more) {
            store_x(step + 1);
            ahead.store(weight_at(step + 1, column), sub_block);
        }
    }
    write_plain_tile(a, product.sums, targets, first_row, tile.count, first_column, my_column);
}

}  // namespace tessera::cuda_kernels
