// Products of many rows by int8 tensor cores: m16n8k32 where a scale serves 32 elements, m16n8k16 where it serves 16.
//
// A block computes 128 rows of 64 outputs or 64 of 128; each of its four warps 64 rows of 32 outputs, with sums in f32.
// Step by step of 64 elements, activations come as they lie in the workspace by asynchronous copies, two steps in
// flight; weights are decoded in registers a step ahead and then put into the other half of shared memory. An integer
// sum of 32 (or 16) elements takes two multiply-adds to become a float by both scales (see kMagic), which on GPUs with
// 128 f32 lanes a multiprocessor fits beside the mma.
#pragma once

#include "../../cuda/kernels/weight_segment.hpp"
#include "write_tile.hpp"

namespace tessera::cuda_kernels {

template <int kType, int kWarpsOfRows>
struct MmaTile {
    using F = Format<kType>;
    using Segment = WeightSegment<F>;
    static constexpr int kWarpsOfOutputs = 4 / kWarpsOfRows;
    static constexpr int kRows = 64 * kWarpsOfRows, kOutputs = 32 * kWarpsOfOutputs;
    static constexpr int kScales = 32 / F::kScaleElements;  // of 32 elements
    static constexpr int kChunks = kSegmentBytes / 16;
    static constexpr int kCopies = (kRows * kChunks + kTilesThreads - 1) / kTilesThreads;
    static constexpr int kPieces = kOutputs * 4 / kTilesThreads;  // that a thread decodes in a step
    static_assert(kOutputs == tile_outputs(kRows));

    float sums[4][4][4];  // by 16 rows, by 8 outputs, as mma has them
    int begin[4];         // kMagicBits, in registers that stay

    // Offsets in shared memory of what a lane reads: fragments of 16 rows of x and of 16 outputs, scales of a row and
    // of an output.
    struct Places {
        int x, x_scales, weights, weight_scales;
        SIMT_DEVICE static Places of_lane(int row, int output) {
            const auto l = static_cast<int>(simt::lane());
            return {(row + l % 16) * kSegmentBytes + l / 16 * 16, (row + l / 4) * kSegmentBytes,
                    (output + l % 8 + l / 16 * 8) * Segment::kBytes + l / 8 % 2 * 16,
                    (output + l % 4 * 2) * Segment::kBytes};
        }
    };

    // `count`: rows of this warp; x, weights: a step's in shared memory.
    SIMT_DEVICE void multiply(const char* x, const char* weights, const Places& places, int count) {
        using namespace simt;
        const char *x_fragments = x + places.x, *x_scales = x + places.x_scales;
        const char *weight_fragments = weights + places.weights, *weight_scales = weights + places.weight_scales;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t b[4][2];
            SIMT_UNROLL
            for (int j = 0; j < 4; j += 2) {
                uint32_t r[4];
                ldmatrix_x4(r, weight_fragments + 8 * j * Segment::kBytes + 32 * half);
                b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
            }
            float scale[kScales][4][2], offset[kScales][4][2];
            SIMT_UNROLL
            for (int s = 0; s < kScales; ++s) {
                SIMT_UNROLL
                for (int j = 0; j < 4; ++j) {
                    SIMT_UNROLL
                    for (int e = 0; e < 2; ++e) {
                        const char* row = weight_scales + (8 * j + e) * Segment::kBytes + 4 * (kScales * half + s);
                        scale[s][j][e] = *at<float>(row, kSegmentElements);
                        if constexpr (F::kOffsets) offset[s][j][e] = *at<float>(row, Segment::kOffset);
                    }
                }
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (16 * i >= count) break;
                uint32_t a[4];
                ldmatrix_x4(a, x_fragments + 16 * i * kSegmentBytes + 32 * half);
                const char* row = x_scales + 16 * i * kSegmentBytes;
                const float d[2] = {*at<float>(row, kSegmentScales + 4 * half),
                                    *at<float>(row, 8 * kSegmentBytes + kSegmentScales + 4 * half)};
                const float m[2] = {-kMagic * d[0], -kMagic * d[1]};
                SIMT_UNROLL
                for (int s = 0; s < kScales; ++s) {
                    SIMT_UNROLL
                    for (int j = 0; j < 4; ++j) {
                        int c[4];
                        if constexpr (kScales == 1) {
                            mma_s8_to(c, a, b[j], begin);
                        } else {
                            mma_s8_k16_to(c, {a[2 * s], a[2 * s + 1]}, b[j][s], begin);
                        }
                        SIMT_UNROLL
                        for (int e = 0; e < 4; ++e)
                            sums[i][j][e] =
                                fmaf(fmaf(bits_as<float>(c[e]), d[e / 2], m[e / 2]), scale[s][j][e % 2], sums[i][j][e]);
                    }
                    if constexpr (F::kOffsets) {
                        const float of[2] = {
                            sum_of_codes<F::kScaleElements>(row, kScales * half + s, d[0]),
                            sum_of_codes<F::kScaleElements>(row + 8 * kSegmentBytes, kScales * half + s, d[1])};
                        SIMT_UNROLL
                        for (int j = 0; j < 4; ++j) {
                            SIMT_UNROLL
                            for (int e = 0; e < 4; ++e)
                                sums[i][j][e] = fmaf(offset[s][j][e % 2], of[e / 2], sums[i][j][e]);
                        }
                    }
                }
            }
        }
    }
};

// Grid: x the tiles of rows, y the outputs by those of a tile (of pairs by half of them), z the batch.
template <int kType, int kWarpsOfRows>
SIMT_DEVICE void multiply_tile_mma(const Tiles& a) {
    using namespace simt;
    using Product = MmaTile<kType, kWarpsOfRows>;
    constexpr int kRows = Product::kRows, kOutputs = Product::kOutputs, kChunks = Product::kChunks;
    constexpr int kWeightBytes = Product::Segment::kBytes;
    SIMT_SHARED(UInt4, x_shared, 2 * kRows * kChunks);
    SIMT_SHARED(UInt4, weight_shared, 2 * kOutputs * kWeightBytes / 16);
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(int, begin, 4);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    const int rows = (tile.count + 15) / 16 * 16;  // that products read
    if (t < tile.count) targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);

    uint32_t from[Product::kCopies];  // in 16 bytes; rows past the last are copies of it
    SIMT_UNROLL
    for (int i = 0; i < Product::kCopies; ++i) {
        const int chunk = t + i * kTilesThreads, row = minimum(chunk / kChunks, tile.count - 1);
        from[i] = static_cast<uint32_t>(row_offset(a, tile, row, a.x_numbering, a.x_row, a.x_slot) / 16) +
                  static_cast<uint32_t>(chunk % kChunks);
    }
    const int steps = static_cast<int>(segments_of(a.k)), pieces = a.k / kPieceElements;
    const int copies = (rows * kChunks - t + kTilesThreads - 1) / kTilesThreads;
    const auto copy_x = [&](int step) {
        const char* x = at<char>(a.x, step * kSegmentBytes);
        UInt4* to = x_shared + step % 2 * kRows * kChunks + t;
        SIMT_UNROLL
        for (int i = 0; i < Product::kCopies; ++i) {
            if (i < copies) copy_async16(to + i * kTilesThreads, x + static_cast<uint64_t>(from[i]) * 16);
        }
        copy_async_commit();
    };
    constexpr int kThreadsOfRow = 4 / Product::kPieces;
    const int column = t / kThreadsOfRow, piece = t % kThreadsOfRow * Product::kPieces;
    const char* weight = weight_of_column(a, tile.matrix, first_column, column);
    const float row_scale = weight ? Product::F::row_scale(weight) : 0.f;
    if (weight) weight += Product::F::kPrefixBytes;
    WeightPieces<kType, Product::kPieces> ahead;
    char* weights = at<char>(static_cast<void*>(weight_shared), 0);
    constexpr int kWeightBuffer = kOutputs * kWeightBytes;

    const int row_warp = static_cast<int>(warp()) % kWarpsOfRows * 64,
              column_warp = static_cast<int>(warp()) / kWarpsOfRows * 32;
    const int count = tile.count - row_warp;
    const auto places = Product::Places::of_lane(row_warp, column_warp);
    Product product;
    if (t < 4) begin[t] = kMagicBits;
    SIMT_UNROLL
    for (int i = 0; i < 64; ++i) product.sums[i / 16][i / 4 % 4][i % 4] = 0;

    copy_x(0);
    ahead.load(weight, row_scale, 0, piece, pieces);
    ahead.store(weights + column * kWeightBytes, piece);
    sync_block();
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) product.begin[i] = begin[i];  // loaded, so that the compiler keeps them in registers
    for (int step = 0; step < steps; ++step) {
        copy_async_wait<0>();
        sync_block();
        const bool more = step + 1 < steps;
        if (more) {
            copy_x(step + 1);
            ahead.load(weight, row_scale, step + 1, piece, pieces);
        }
        const int half = step % 2;
        product.multiply(reinterpret_cast<const char*>(x_shared + half * kRows * kChunks),
                         weights + half * kWeightBuffer, places, count);
        if (more) ahead.store(weights + (half ^ 1) * kWeightBuffer + column * kWeightBytes, piece);
    }
    write_mma_tile(a, product.sums, targets + row_warp, count, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
