// Products of many rows by int8 tensor cores with formats whose blocks have 256 elements. tiles_staged.hpp multiplies
// likewise, with other formats, too.
//
// Activations have one scale for a block (tiles.hpp), so that only the weights' scales of 16 or 32 elements are applied
// within it, by one multiply-add: integer sums of tensor cores begin at the bits of kMagic, and those of the result are
// the float kMagic + c for a sum c. What kMagic adds over a block, kMagic times the sum of its scales, is the same for
// all rows and is taken away at its beginning, by the multiply-add that brings the sums to the units of the block.
// Where scales are a number of 11 bits times small integers, what is taken away and what is added are exact, as they
// are of scales of 11 bits whose exponents are near one another. While a block is added, sums are rounded to some 2^-24
// of that bias: a few units of c, where the rounding of activations to int8 changes c by about a hundred over a block.
//
// Where a scale serves 16 elements, there are eight multiply-adds for what one m16n8k32 multiplies. kSplit: codes times
// the integers of their scales are multiplied instead, as two int8, by twice as many tensor products. Integer sums then
// run over 64 elements, and take a multiply-add for each of both parts. For cards on which that costs less.
//
// Minimums of blocks (q2_K, q4_K, q5_K, iq1_m) are multiplied with the sums of codes by tensor cores in f16, and are
// for that rounded to its 11 bits; beyond 65504 they are infinite.
#pragma once

#include "block_weights.hpp"
#include "split_shared.hpp"
#include "write_tile.hpp"

namespace tessera::cuda_kernels {

template <int kType, int kOutputs, int kParts, bool kSplit>
struct SharedOf {
    using Weights = BlockWeights<kType, kParts>;
    using Type = BlockShared<kOutputs, kSegmentElements / Weights::kGroup, Weights::kMinimums / 8>;
};
template <int kType, int kOutputs, int kParts>
struct SharedOf<kType, kOutputs, kParts, true> {
    using Type = SplitShared<kOutputs, kParts, split_factor(kType)>;
};

// As split products decode them.
template <int kType, int kParts>
struct SplitWeights : BlockWeights<kType, kParts> {};

template <int kType, int kParts, bool kSplit>
struct WeightsOf : BlockWeights<kType, kParts> {};
template <int kType, int kParts>
struct WeightsOf<kType, kParts, true> : SplitWeights<kType, kParts> {};

// The same value; compilers do not compute it anew, from what it was made of, where it is used.
SIMT_DEVICE int kept(int value) {
    return simt::shuffle(value, static_cast<int>(simt::lane()));
}

// A block computes 64 or 128 rows of kTileOutputs; each of its warps 64 rows.
// kPartsOfRow: threads that decode a row of the weight.
template <int kType, int kWarpsOfRows, bool kSplit, int kWarps = 4,
          int kTileOutputs = tile_outputs(static_cast<tsr_type>(kType), 64 * kWarpsOfRows),
          int kPartsOfRow = 32 * kWarps / kTileOutputs>
struct BlockTile {
    static constexpr int kThreads = 32 * kWarps, kOutputs = kTileOutputs, kParts = kPartsOfRow;
    static constexpr int kWarpsOfOutputs = kWarps / kWarpsOfRows, kRows = 64 * kWarpsOfRows;
    static constexpr int kColumns = kOutputs / kWarpsOfOutputs / 8;  // of a warp, by 8
    using Weights = WeightsOf<kType, kParts, kSplit>;
    using Shared = typename SharedOf<kType, kOutputs, kParts, kSplit>::Type;
    static constexpr int kVectors = kSegmentBytes / 16;
    static constexpr int kCopies = (kRows * kVectors + kThreads - 1) / kThreads;  // of a thread, of one row

    float sums[4][kColumns][4];  // by 16 rows, by 8 outputs, as mma has them
    int begin[4];                // kMagicBits, in registers that stay
    // Bit i: whether the warp's 16 rows from 16 i on have any. From a vote, so that compilers know it to be the same in
    // all lanes, and that the lanes are together behind a branch.
    unsigned filled;
    // What a lane reads of a segment of x and of weights: fragments of 16 rows and of 16 outputs, ratios and sums of
    // codes, scales, minimums.
    const char *x, *x_rows;
    const Shared* shared;
    int codes;            // where those of the first 32 elements begin, in bytes
    int outputs, column;  // the first of the warp, and of the lane

    SIMT_DEVICE void place(const simt::UInt4* x_shared, const Shared& weights, int row, int output) {
        const auto l = static_cast<int>(simt::lane());
        x = at<char>(static_cast<const void*>(x_shared), kept((row + l % 16) * kSegmentBytes + l / 16 * 16));
        x_rows = at<char>(static_cast<const void*>(x_shared), row * kSegmentBytes + kSegmentElements);
        codes = kept(16 * swizzled(output + l % 8 + l / 16 * 8, l / 8 % 2));
        shared = &weights;
        outputs = output;
        column = output + l % 4 * 2;
    }

    // To the units of the block that begins.
    SIMT_DEVICE void begin_block(int buffer) {
        using namespace simt;
        float bias[kColumns][2];
        SIMT_UNROLL
        for (int j = 0; j < kColumns; ++j) {
            const int first = column + 8 * j;
            bias[j][0] = bias[j][1] = 0;
            SIMT_UNROLL
            for (int part = 0; part < kParts; ++part) {
                const auto two = *reinterpret_cast<const Float2*>(&shared->bias[part][first]);
                bias[j][0] -= two.x, bias[j][1] -= two.y;
            }
        }
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            if (!(filled >> i & 1)) break;
            const char* of = x_rows + (buffer * kRows + 16 * i + static_cast<int>(lane()) / 4) * kSegmentBytes;
            const float ratio[2] = {*at<float>(of, 0), *at<float>(of, 8 * kSegmentBytes)};
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) {
                SIMT_UNROLL
                for (int e = 0; e < 4; ++e) sums[i][j][e] = fmaf(sums[i][j][e], ratio[e / 2], bias[j][e % 2]);
            }
        }
    }

    // Of split products: 256 times the first sums and the second.
    SIMT_DEVICE void add_split(int i, int j, const int (&high)[4], const int (&low)[4], const float (&scale)[2]) {
        using namespace simt;
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e)
            sums[i][j][e] =
                fmaf(fmaf(bits_as<float>(high[e]), 256.f, bits_as<float>(low[e])), scale[e % 2], sums[i][j][e]);
    }

    SIMT_DEVICE void add(int i, int j, const int (&c)[4], const float (&scale)[2]) {
        using namespace simt;
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) sums[i][j][e] = fmaf(bits_as<float>(c[e]), scale[e % 2], sums[i][j][e]);
    }

    // Scales of group `group` of a segment.
    SIMT_DEVICE void load_scales(int buffer, int group, float (&scale)[kColumns][2]) const {
        using namespace simt;
        SIMT_UNROLL
        for (int j = 0; j < kColumns; ++j) {
            const auto two = *reinterpret_cast<const Float2*>(&shared->scales[buffer][group][column + 8 * j]);
            scale[j][0] = two.x, scale[j][1] = two.y;
        }
    }

    // Fragments of the outputs of a warp: of the first or the second 32 elements of a segment.
    SIMT_DEVICE void load_codes(int plane, int half, uint32_t (&b)[kColumns][2]) const {
        // Two sub-blocks further in the order of swizzled.
        const char* from = at<char>(static_cast<const void*>(shared->codes), codes ^ 32 * half);
        SIMT_UNROLL
        for (int j = 0; j < kColumns; j += 2) {
            uint32_t r[4];
            simt::ldmatrix_x4(r, from + (plane * kOutputs + 8 * j) * kSegmentElements);
            b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
        }
    }

    // `stage`: of x. kTiles: how many times 16 rows; those that the warp does not have end it if there are two, and of
    // four all are computed, so that the compiler has no branches to keep to.
    template <int kTiles = 0>
    SIMT_DEVICE void multiply(int stage, int buffer) {
        using namespace simt;
        constexpr int kScales = Weights::kGroup == 16 ? 2 : 1;  // of 32 elements
        float scale[kScales][kColumns][2];
        if constexpr (Weights::kGroup == 64) load_scales(buffer, 0, scale[0]);
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t b[kColumns][2];
            load_codes(buffer, half, b);
            SIMT_UNROLL
            for (int s = 0; s < kScales; ++s) {
                if constexpr (Weights::kGroup != 64) load_scales(buffer, kScales * half + s, scale[s]);
            }
            SIMT_UNROLL
            for (int i = 0; i < (kTiles == 2 ? 2 : 4); ++i) {
                if (kTiles != 4 && !(filled >> i & 1)) break;
                uint32_t a[4];
                ldmatrix_x4(a, x + (stage * kRows + 16 * i) * kSegmentBytes + 32 * half);
                SIMT_UNROLL
                for (int j = 0; j < kColumns; ++j) {
                    int c[4];
                    if constexpr (kScales == 2) {
                        SIMT_UNROLL
                        for (int s = 0; s < 2; ++s) {
                            mma_s8_k16_to(c, {a[2 * s], a[2 * s + 1]}, b[j][s], begin);
                            add(i, j, c, scale[s][j]);
                        }
                    } else {
                        mma_s8_to(c, a, b[j], begin);
                        add(i, j, c, scale[0][j]);
                    }
                }
            }
        }
    }

    SIMT_DEVICE void multiply_split(int stage, int buffer) {
        using namespace simt;
        float scale[kColumns][2];
        load_scales(buffer, 0, scale);
        // Two times eight outputs at once, as many as fragments of both planes leave registers for.
        SIMT_UNROLL
        for (int first = 0; first < kColumns; first += 2) {
            uint32_t b[2][2][2][2];  // by plane, half and eight outputs
            SIMT_UNROLL
            for (int plane = 0; plane < 2; ++plane) {
                SIMT_UNROLL
                for (int half = 0; half < 2; ++half) {
                    uint32_t r[4];
                    ldmatrix_x4(r, at<char>(static_cast<const void*>(shared->codes), codes ^ 32 * half) +
                                       ((2 * buffer + plane) * kOutputs + 8 * first) * kSegmentElements);
                    b[plane][half][0][0] = r[0], b[plane][half][0][1] = r[1];
                    b[plane][half][1][0] = r[2], b[plane][half][1][1] = r[3];
                }
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (!(filled >> i & 1)) break;
                uint32_t a[2][4];
                SIMT_UNROLL
                for (int half = 0; half < 2; ++half)
                    ldmatrix_x4(a[half], x + (stage * kRows + 16 * i) * kSegmentBytes + 32 * half);
                SIMT_UNROLL
                for (int j = 0; j < 2; ++j) {
                    int c[2][4];
                    SIMT_UNROLL
                    for (int plane = 0; plane < 2; ++plane) {
                        mma_s8_to(c[plane], a[0], b[plane][0][j], begin);
                        mma_s8(c[plane], a[1], b[plane][1][j]);
                    }
                    add_split(i, first + j, c[0], c[1], scale[first + j]);
                }
            }
        }
    }

    // Minimums of 8 groups times the sums of codes that lie behind a segment of x.
    SIMT_DEVICE void add_minimums(int buffer, int set) {
        using namespace simt;
        uint32_t b[kColumns / 4][4];
        SIMT_UNROLL
        for (int j = 0; j < kColumns / 4; ++j)
            ldmatrix_x4(b[j], &shared->minimums[set][outputs + 32 * j + static_cast<int>(lane())]);
        SIMT_UNROLL
        for (int i = 0; i < 4; i += 2) {
            if (!(filled >> i & 1)) break;
            uint32_t a[4];  // of two times 16 rows; rows past the last tile of 16 are not used
            ldmatrix_x4(a, x_rows + (buffer * kRows + 16 * i + static_cast<int>(lane())) * kSegmentBytes);
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) {
                mma_f16_k8(sums[i][j], {a[0], a[1]}, b[j / 4][j % 4]);
                mma_f16_k8(sums[i + 1][j], {a[2], a[3]}, b[j / 4][j % 4]);
            }
        }
    }
};

// Grid: x the tiles of rows, y the outputs by those of a tile (of pairs by half of them), z the batch.
template <int kType, int kWarpsOfRows>
SIMT_DEVICE void multiply_tile_blocks(const Tiles& a) {
    using namespace simt;
    using Product = BlockTile<kType, kWarpsOfRows, false>;
    using Weights = typename Product::Weights;
    constexpr int kBytesOfBlock = Weights::F::kBlockBytes * (kBlockElements / Weights::F::kBlockElements);
    constexpr int kRows = Product::kRows, kOutputs = Product::kOutputs, kVectors = Product::kVectors;
    SIMT_SHARED(UInt4, x_shared, 2 * kRows * kVectors);
    SIMT_SHARED(typename Product::Shared, weight_shared, 1);
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(float, row_scales, kRows);
    SIMT_SHARED(int, begin, 4);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    const auto blocks = static_cast<int>(blocks_of(a.k));
    if (t < tile.count) {
        targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);
        row_scales[t] = *at<float>(a.x, row_offset(a, tile, t, a.x_numbering, a.x_row, a.x_slot) +
                                            blocks * int64_t{kBlockSegments * kSegmentBytes});
    }

    // Whole pairs of 16 rows, as products with minimums read them; rows past the last are copies of it.
    const int rows = (tile.count + 31) / 32 * 32;
    constexpr int kThreadsOfX = kTilesThreads / kRows;
    const int x_row = t / kThreadsOfX, x_vector = t % kThreadsOfX * Product::kCopies;
    const auto* x = at<char>(
        a.x, row_offset(a, tile, minimum(x_row, tile.count - 1), a.x_numbering, a.x_row, a.x_slot) + 16 * x_vector);
    UInt4* const x_to = x_shared + x_row * kVectors + x_vector;
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
    // Columns past the last output are computed like it, and not written.
    const int column = t / Product::kParts, part = t % Product::kParts;
    const char* weight = nearest_weight_of_column(a, tile.matrix, first_column, column);
    const float row_scale = Weights::F::row_scale(weight);
    weight += Weights::F::kPrefixBytes;
    Weights ahead;

    const int row_warp = static_cast<int>(warp()) % kWarpsOfRows * 64,
              column_warp = static_cast<int>(warp()) / kWarpsOfRows * 8 * Product::kColumns;
    Product product;
    product.filled = vote_ballot(16 * static_cast<int>(lane()) < tile.count - row_warp);
    product.place(x_shared, weight_shared[0], row_warp, column_warp);
    if (t < 4) begin[t] = kMagicBits;
    SIMT_UNROLL
    for (int i = 0; i < 16 * Product::kColumns; ++i)
        product.sums[i / (4 * Product::kColumns)][i / 4 % Product::kColumns][i % 4] = 0;

    copy_x(0, 0);
    weight_shared[0].begin();
    if constexpr (requires { ahead.begin(); }) ahead.begin();
    ahead.load(weight, row_scale, 0, part);
    ahead.store(weight_shared[0], 0, column, part);
    sync_block();
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) product.begin[i] = begin[i];  // loaded, so that the compiler keeps them in registers
    for (int block = 0; block < blocks; ++block) {
        const bool last = block + 1 == blocks;
        SIMT_UNROLL
        for (int s = 0; s < kBlockSegments; ++s) {
            const int next = (s + 1) % kBlockSegments;
            const bool more = s < kBlockSegments - 1 || !last;
            copy_async_wait<0>();
            sync_block();
            if (more) {
                copy_x(s + 1, next % 2);
                if (next == 0) weight += kBytesOfBlock;
                ahead.load(weight, row_scale, next, part);
            }
            if (s == 0) product.begin_block(s % 2);
            product.multiply(s % 2, s % 2);
            if (Weights::kMinimums == 16 && (s == 1 || s == 2)) product.add_minimums(s % 2, s - 1);
            if (Weights::kMinimums == 8 && s == 3) product.add_minimums(s % 2, 0);
            if (more) ahead.store(weight_shared[0], next, column, part);
        }
        x += kBlockSegments * kSegmentBytes;
    }
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int row = row_warp + 16 * i + e / 2 * 8 + static_cast<int>(lane()) / 4;
            const float scale = row < tile.count ? row_scales[row] : 0.f;
            SIMT_UNROLL
            for (int j = 0; j < Product::kColumns; ++j)
                product.sums[i][j][e] = product.sums[i][j][e] * scale * (1.f / block_weights::kScaleUnit<kType>);
        }
    }
    write_mma_tile(a, product.sums, targets + row_warp, tile.count - row_warp, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
