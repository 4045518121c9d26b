// Products of many rows by int8 tensor cores with formats whose blocks have 32 elements: m16n8k32, or m16n8k16 where a
// scale serves 16 elements.
//
// A block computes 64 rows of 128 outputs, or 128 rows of tile_outputs; each of its four warps 64 rows, with sums in
// f32. Step by step of 64 elements, activations come as they lie in the workspace by asynchronous copies, two steps in
// flight; weights are decoded in registers a step ahead and then put into the other half of shared memory. Both
// operands have scales of 32 elements, so that an integer sum takes two multiply-adds to become a float by both of them
// (see kMagic). Offsets of q4_1 and q5_1 are multiplied with the sums of activations by tensor cores in bf16, both in
// two parts: of the eight products of m16n8k8 each of the two groups of a step has four.
#pragma once

#include "kernels/cuda/matmul/weight_segment.hpp"
#include "swizzle.hpp"
#include "write_tile.hpp"

namespace tessera::cuda_kernels {

// What a block of threads has of the weight: two steps.
template <class F, int kOutputs>
struct SegmentShared {
    static constexpr int kGroups = kSegmentElements / F::kScaleElements;
    simt::UInt4 codes[2][kOutputs * 4];  // see swizzled
    // Of each group; rows of 16 banks more, so that two groups are stored at once.
    alignas(8) float scales[2][kGroups][kOutputs + 16];
    uint32_t offsets[2][F::kOffsets ? kGroups : 1][F::kOffsets ? kOutputs + 16 : 1];  // two bf16
};

template <int kType, int kWarpsOfRows>
struct MmaTile {
    using F = Format<kType>;
    static constexpr int kWarpsOfOutputs = 4 / kWarpsOfRows, kRows = 64 * kWarpsOfRows;
    static constexpr int kOutputs = tile_outputs(static_cast<tsr_type>(kType), kRows);
    static constexpr int kColumns = kOutputs / kWarpsOfOutputs / 8;  // of a warp, by 8
    static constexpr int kScales = 32 / F::kScaleElements;           // of 32 elements
    static constexpr int kVectors = kSegmentBytes / 16;
    static constexpr int kCopies = (kRows * kVectors + kTilesThreads - 1) / kTilesThreads;  // of a thread, of one row
    static constexpr int kSubBlocks = kOutputs * 4 / kTilesThreads;  // that a thread decodes in a step
    using Shared = SegmentShared<F, kOutputs>;

    float sums[4][kColumns][4];  // by 16 rows, by 8 outputs, as mma has them
    int begin[4];                // kMagicBits, in registers that stay
    int count;                   // of rows of this warp
    // What a lane reads of a step: fragments of 16 rows of x, scales and sums of a row; fragments of 16 outputs, of the
    // first and the second 32 elements.
    const char *x, *x_scales, *codes[2];
    const Shared* shared;
    int column;

    SIMT_DEVICE void place(const simt::UInt4* x_shared, const Shared& weights, int row, int output) {
        const auto l = static_cast<int>(simt::lane());
        const char* rows = at<char>(static_cast<const void*>(x_shared), row * kSegmentBytes);
        x = rows + l % 16 * kSegmentBytes + l / 16 * 16;
        x_scales = rows + l / 4 * kSegmentBytes + kSegmentScales;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half)
            codes[half] = at<char>(static_cast<const void*>(weights.codes),
                                   16 * swizzled(output + l % 8 + l / 16 * 8, 2 * half + l / 8 % 2));
        shared = &weights;
        column = output;
    }

    SIMT_DEVICE void multiply(int buffer) {
        using namespace simt;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t b[kColumns][2];
            SIMT_UNROLL
            for (int j = 0; j < kColumns; j += 2) {
                uint32_t r[4];
                ldmatrix_x4(r, codes[half] + (buffer * kOutputs + 8 * j) * kSegmentElements);
                b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
            }
            float scale[kScales][kColumns][2];
            SIMT_UNROLL
            for (int s = 0; s < kScales; ++s) {
                SIMT_UNROLL
                for (int j = 0; j < kColumns; ++j) {
                    const auto two = *reinterpret_cast<const Float2*>(
                        &shared->scales[buffer][kScales * half + s][column + 8 * j + static_cast<int>(lane()) % 4 * 2]);
                    scale[s][j][0] = two.x, scale[s][j][1] = two.y;
                }
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (16 * i >= count) break;
                uint32_t a[4];
                ldmatrix_x4(a, x + (buffer * kRows + 16 * i) * kSegmentBytes + 32 * half);
                const char* row = x_scales + (buffer * kRows + 16 * i) * kSegmentBytes + 4 * half;
                const float d[2] = {*at<float>(row, 0), *at<float>(row, 8 * kSegmentBytes)};
                const float m[2] = {-kMagic * d[0], -kMagic * d[1]};
                SIMT_UNROLL
                for (int j = 0; j < kColumns; ++j) {
                    SIMT_UNROLL
                    for (int s = 0; s < kScales; ++s) {
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
                }
            }
        }
        if constexpr (F::kOffsets) add_offsets(buffer);
    }

    // Lane 4 r + q has products 2 q and 2 q + 1: of group q / 2, both parts of a row's sum by part q % 2 of an offset.
    SIMT_DEVICE void add_offsets(int buffer) {
        using namespace simt;
        const auto l = static_cast<int>(lane());
        const int group = l / 2 % 2;
        const uint32_t twice = l % 2 == 0 ? 0x1010u : 0x3232u;
        uint32_t b[kColumns];
        SIMT_UNROLL
        for (int j = 0; j < kColumns; ++j)
            b[j] = byte_permute(shared->offsets[buffer][group][column + 8 * j + l / 4], 0, twice);
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            if (16 * i >= count) break;
            const char* row = x_scales + (buffer * kRows + 16 * i) * kSegmentBytes + kSegmentSums - kSegmentScales;
            const uint32_t a[2] = {*at<uint32_t>(row, 4 * group), *at<uint32_t>(row, 8 * kSegmentBytes + 4 * group)};
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) mma_bf16_k8(sums[i][j], a, b[j]);
        }
    }

    // `first`: of the four sub-blocks of the row that `sub_blocks` are.
    SIMT_DEVICE static void store(Shared& to, int buffer, int row, int first,
                                  const WeightSubBlocks<kType, kSubBlocks>& sub_blocks) {
        using namespace simt;
        constexpr int kOfScale = F::kScaleElements / kSubBlockElements;
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks; ++i)
            to.codes[buffer][swizzled(row, first + i)] =
                UInt4{sub_blocks.codes[i][0], sub_blocks.codes[i][1], sub_blocks.codes[i][2], sub_blocks.codes[i][3]};
        SIMT_UNROLL
        for (int i = 0; i < kSubBlocks / kOfScale; ++i) {
            to.scales[buffer][first / kOfScale + i][row] = sub_blocks.scales[i];
            if constexpr (F::kOffsets)
                to.offsets[buffer][first / kOfScale + i][row] = two_bfloats(sub_blocks.offsets[i]);
        }
    }
};

// Grid: x the tiles of rows, y the outputs by those of a tile (of pairs by half of them), z the batch.
template <int kType, int kWarpsOfRows>
SIMT_DEVICE void multiply_tile_mma(const Tiles& a) {
    using namespace simt;
    using Product = MmaTile<kType, kWarpsOfRows>;
    using F = typename Product::F;
    constexpr int kRows = Product::kRows, kOutputs = Product::kOutputs, kVectors = Product::kVectors;
    SIMT_SHARED(UInt4, x_shared, 2 * kRows * kVectors);
    SIMT_SHARED(typename Product::Shared, weight_shared, 1);
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(int, begin, 4);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    const int rows = (tile.count + 15) / 16 * 16;  // that products read; those past the last are copies of it
    if (t < tile.count) targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);

    constexpr int kThreadsOfX = kTilesThreads / kRows;
    const int x_row = t / kThreadsOfX, x_vector = t % kThreadsOfX * Product::kCopies;
    const auto* x = at<char>(
        a.x, row_offset(a, tile, minimum(x_row, tile.count - 1), a.x_numbering, a.x_row, a.x_slot) + 16 * x_vector);
    UInt4* const x_to = x_shared + x_row * kVectors + x_vector;
    const int steps = static_cast<int>(segments_of(a.k)), sub_blocks = a.k / kSubBlockElements;
    const auto copy_x = [&](int segment, int buffer) {
        if (x_row < rows) {
            SIMT_UNROLL
            for (int i = 0; i < Product::kCopies; ++i) {
                if (kThreadsOfX == 1 || x_vector + i < kVectors)
                    copy_async16(x_to + buffer * kRows * kVectors + i, x + segment * kSegmentBytes + 16 * i);
            }
        }
        copy_async_commit();
    };
    constexpr int kThreadsOfRow = 4 / Product::kSubBlocks;
    const int column = t / kThreadsOfRow, sub_block = t % kThreadsOfRow * Product::kSubBlocks;
    // Columns past the last output are computed like it, and not written.
    const char* weight = nearest_weight_of_column(a, tile.matrix, first_column, column);
    const float row_scale = F::row_scale(weight);
    weight += F::kPrefixBytes;
    WeightSubBlocks<kType, Product::kSubBlocks> ahead;

    const int row_warp = static_cast<int>(warp()) % kWarpsOfRows * 64,
              column_warp = static_cast<int>(warp()) / kWarpsOfRows * 8 * Product::kColumns;
    Product product;
    product.count = tile.count - row_warp;
    product.place(x_shared, weight_shared[0], row_warp, column_warp);
    if (t < 4) begin[t] = kMagicBits;
    SIMT_UNROLL
    for (int i = 0; i < 16 * Product::kColumns; ++i)
        product.sums[i / (4 * Product::kColumns)][i / 4 % Product::kColumns][i % 4] = 0;

    copy_x(0, 0);
    ahead.load(weight, row_scale, 0, sub_block, sub_blocks);
    Product::store(weight_shared[0], 0, column, sub_block, ahead);
    sync_block();
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) product.begin[i] = begin[i];  // loaded, so that the compiler keeps them in registers
    for (int step = 0; step < steps; step += 2) {
        SIMT_UNROLL
        for (int s = 0; s < 2; ++s) {
            if (step + s >= steps) break;
            copy_async_wait<0>();
            sync_block();
            const bool more = step + s + 1 < steps;
            if (more) {
                copy_x(s + 1, 1 - s);
                ahead.load(weight, row_scale, step + s + 1, sub_block, sub_blocks);
            }
            product.multiply(s);
            if (more) Product::store(weight_shared[0], 1 - s, column, sub_block, ahead);
        }
        x += 2 * kSegmentBytes;
    }
    write_mma_tile(a, product.sums, targets + row_warp, product.count, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
