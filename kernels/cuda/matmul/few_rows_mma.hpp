// Products of few rows by tensor cores: rows of the weight are the first operand, 16 at once, and up to eight rows of
// activations the columns of the second, or 16 in two. So a weight is decoded once for all of them.
//
// The warps of a block share the length of 16 rows of the weight: each takes 256 elements of them, then those that come
// after the other warps'. They come by asynchronous copies, the next ones while these are multiplied. Which elements
// the places of k stand for is free within a group of 32, as long as both operands agree (mma_units.hpp).
#pragma once

#include "../formats/block_formats.hpp"
#include "../formats/mma_units.hpp"
#include "../rows.hpp"
#include "column_places.hpp"

#if SIMT_ARCH >= 800
namespace tessera::cuda_kernels {

inline constexpr unsigned kColumnElements = 256;  // of each row that a warp takes at once
inline constexpr unsigned kColumnStages = 2;

// 256 elements of 16 rows, as they lie in shared memory.
template <int kType>
struct ColumnKTile {
    using F = Format<kType>;
    static constexpr unsigned kBytes = kColumnElements / F::kBlockElements * F::kBlockBytes;
    // What is copied begins and ends at multiples of the vectors that rows consist of.
    static constexpr unsigned kMost = kBytes % 16 == 0 && F::kPrefixBytes == 0 ? kBytes : (kBytes + 15 + 15) / 16 * 16;
    // Rows are odd multiples of 16 bytes apart: lanes of eight rows meet in no bank.
    static constexpr unsigned kRow = kMost % 32 == 0 ? kMost + 16 : kMost;
    static constexpr unsigned kVectors = kMost / 16;
    static constexpr unsigned kStageBytes = 16 * kRow;
};

// Copies of k-tiles of rows to shared memory: four lanes a row, of rows g and g + 8, so that all places but the lane's
// first are constants.
template <int kType>
class ColumnStream {
    using P = ColumnKTile<kType>;
    static constexpr unsigned kSteps = (P::kVectors + 3) / 4;

  public:
    // Rows of `bytes` bytes, `stride` apart, of which there are `count`; past them it is the last one again. They begin
    // at multiples of `vector` bytes, a power of two up to 16, and their lengths are multiples of it.
    SIMT_DEVICE ColumnStream(const char* rows, uint32_t stride, unsigned count, int bytes, unsigned vector)
        : rows_(rows), stride_(stride), count_(count), bytes_(bytes), vector_(vector) {
        const unsigned g = simt::lane() / 4, t = simt::lane() % 4;
        near_ = rows + simt::minimum(g, count - 1) * stride + 16 * t;
        far_ = rows + simt::minimum(g + 8, count - 1) * stride + 16 * t;
        to_ = P::kRow * g + 16 * t;
    }
    // Where the k-tile begins in a row, and how much before it is copied, too.
    SIMT_DEVICE static unsigned begin(unsigned k_tile) { return Format<kType>::kPrefixBytes + P::kBytes * k_tile; }
    SIMT_DEVICE unsigned skew(unsigned k_tile) const { return begin(k_tile) & (vector_ - 1); }
    // Begins to copy; what is past the end of rows becomes zeros.
    SIMT_DEVICE void copy(unsigned k_tile, char* shared) const {
        using namespace simt;
        const unsigned first = begin(k_tile) & ~(vector_ - 1);
        if (vector_ == 16) {
            const char *near = near_ + first, *far = far_ + first;
            char* to = shared + to_;
            const int left = bytes_ - static_cast<int>(first);
            if (left >= static_cast<int>(P::kMost)) {
                SIMT_UNROLL
                for (unsigned i = 0; i < kSteps; ++i) {
                    if (!has(i)) continue;
                    copy_async16(to + 64 * i, near + 64 * i);
                    copy_async16(to + 8 * P::kRow + 64 * i, far + 64 * i);
                }
            } else {
                SIMT_KEEP_LOOP
                for (unsigned i = 0; i < kSteps; ++i) {
                    if (!has(i)) continue;
                    const bool within = static_cast<int>(16 * (lane() % 4) + 64 * i) < left;
                    copy_async16(to + 64 * i, within ? near + 64 * i : rows_, within ? 16 : 0);
                    copy_async16(to + 8 * P::kRow + 64 * i, within ? far + 64 * i : rows_, within ? 16 : 0);
                }
            }
            return;
        }
        // What a format's blocks are aligned to at least; more is not worth its code.
        constexpr int kAlignment = Format<kType>::kAlignment;
        if constexpr (kAlignment <= 8) {
            if (kAlignment == 8 || vector_ == 8) {
                copy_by<UInt2>(first, shared);
                return;
            }
        }
        if constexpr (kAlignment == 4) copy_by<uint32_t>(first, shared);
        if constexpr (kAlignment == 2) copy_by<uint16_t>(first, shared);
        if constexpr (kAlignment == 1) copy_by<uint8_t>(first, shared);
    }

  private:
    SIMT_DEVICE static bool has(unsigned step) {
        return 4 * step + 4 <= P::kVectors || simt::lane() % 4 < P::kVectors - 4 * step;
    }
    template <class Vector>
    SIMT_DEVICE void copy_by(unsigned first, char* shared) const {
        constexpr unsigned kOfRow = P::kMost / sizeof(Vector), kAtOnce = 4;
        for (unsigned begin = simt::lane(); begin < 16 * kOfRow; begin += 32 * kAtOnce) {
            Vector vectors[kAtOnce] = {};
            SIMT_UNROLL
            for (unsigned i = 0; i < kAtOnce; ++i) {
                const unsigned index = begin + 32 * i, row = index / kOfRow;
                const unsigned at = first + static_cast<unsigned>(sizeof(Vector)) * (index % kOfRow);
                if (index < 16 * kOfRow && static_cast<int>(at) < bytes_)
                    vectors[i] = simt::load_global<Vector>(rows_ + simt::minimum(row, count_ - 1) * stride_ + at);
            }
            SIMT_UNROLL
            for (unsigned i = 0; i < kAtOnce; ++i) {
                const unsigned index = begin + 32 * i;
                if (index < 16 * kOfRow)
                    *reinterpret_cast<Vector*>(shared + index / kOfRow * P::kRow + sizeof(Vector) * (index % kOfRow)) =
                        vectors[i];
            }
        }
    }

    const char* rows_;
    uint32_t stride_;
    unsigned count_;
    int bytes_;
    unsigned vector_;
    const char *near_, *far_;  // this lane's vectors of rows g and g + 8
    unsigned to_;              // and where they go
};

// Eight rows of activations (column_places.hpp), as a lane reads them: codes of row g, scales and sums of
// rows 2 t and 2 t + 1.
struct ColumnRows {
    const char *codes, *scales, *sums;

    // Those at `rows`, of which there are `count`; past them it is the last ones again.
    SIMT_DEVICE static ColumnRows of(const char* rows, unsigned count, int k) {
        using namespace simt;
        const unsigned g = minimum(lane() / 4, count - 1), t = minimum(lane() % 4, (count - 1) / 2);
        return {rows + 64 * g + 16 * (lane() % 4), rows + column_scale(k, 0, 0) + 16 * t,
                rows + column_sum(k, 0, 0) + 32 * t};
    }
    // The same `pairs` pairs of groups further.
    SIMT_DEVICE ColumnRows from(unsigned pairs) const {
        return {codes + 512 * pairs, scales + 64 * pairs, sums + 128 * pairs};
    }
};

// 64 elements of them: for each group two words, scales of two columns, and of each half of it their sums.
struct ColumnWords {
    uint32_t codes[4];
    float scales[2][2], sums[2][4];  // [column]

    template <bool kSums>
    SIMT_DEVICE void load(const ColumnRows& x, unsigned pair) {
        using namespace simt;
        const auto four = load_global<UInt4>(x.codes + 512 * pair);
        codes[0] = four.x, codes[1] = four.y, codes[2] = four.z, codes[3] = four.w;
        const auto d = load_global<Float4>(x.scales + 64 * pair);
        scales[0][0] = d.x, scales[0][1] = d.y, scales[1][0] = d.z, scales[1][1] = d.w;
        if constexpr (kSums) {
            SIMT_UNROLL
            for (unsigned column = 0; column < 2; ++column) {
                const auto s = load_global<Float4>(x.sums + 128 * pair + 16 * column);
                sums[column][0] = s.x, sums[column][1] = s.y, sums[column][2] = s.z, sums[column][3] = s.w;
            }
        }
    }
};

// Integer sums begin at the bits of 1.5 * 2^23, so that they are floats without a conversion.
inline constexpr int kFloatOfZero = 0x4B400000;
SIMT_DEVICE float product_of(int sum) {
    return simt::bits_as<float>(sum) - 12582912.f;
}

// Adds the products of 64 elements of 16 rows of the weight and eight of activations: sums[0] and [1] are of row g with
// columns 2 t and 2 t + 1, the others of row g + 8.
template <int kType>
SIMT_DEVICE void add_columns(const MmaWords& near, const MmaWords& far, const ColumnWords& x, float (&sums)[4]) {
    using namespace simt;
    using F = Format<kType>;
    const int zeros[4] = {kFloatOfZero, kFloatOfZero, kFloatOfZero, kFloatOfZero};
    SIMT_UNROLL
    for (int group = 0; group < 2; ++group) {
        const int i = 2 * group;
        if constexpr (F::kScaleElements == 32) {
            int c[4];
            mma_s8_to(c, {near.codes[i], far.codes[i], near.codes[i + 1], far.codes[i + 1]},
                      {x.codes[i], x.codes[i + 1]}, zeros);
            if constexpr (MmaUnit<kType>::kSums)
                mma_s8(c, {near.more[i], far.more[i], near.more[i + 1], far.more[i + 1]}, {x.codes[i], x.codes[i + 1]});
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const float scale = j < 2 ? near.scales[i] : far.scales[i];
                sums[j] = fmaf(product_of(c[j]), scale * x.scales[j % 2][group], sums[j]);
                if constexpr (F::kOffsets)
                    sums[j] = fmaf(j < 2 ? near.offsets[i] : far.offsets[i], x.sums[j % 2][i] + x.sums[j % 2][i + 1],
                                   sums[j]);
            }
        } else {
            int c[2][4];
            SIMT_UNROLL
            for (int half = 0; half < 2; ++half)
                mma_s8_k16_to(c[half], {near.codes[i + half], far.codes[i + half]}, x.codes[i + half], zeros);
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                const float(&scales)[4] = j < 2 ? near.scales : far.scales;
                const float both = fmaf(product_of(c[1][j]), scales[i + 1], product_of(c[0][j]) * scales[i]);
                sums[j] = fmaf(both, x.scales[j % 2][group], sums[j]);
                if constexpr (F::kOffsets) {
                    const float(&offsets)[4] = j < 2 ? near.offsets : far.offsets;
                    sums[j] = fmaf(offsets[i], x.sums[j % 2][i], sums[j]);
                    sums[j] = fmaf(offsets[i + 1], x.sums[j % 2][i + 1], sums[j]);
                }
            }
        }
    }
}

template <int kType>
inline constexpr unsigned kColumnBytes =
    kColumnStages* ColumnKTile<kType>::kStageBytes + MmaUnit<kType>::kSharedBytes;  // of a warp

// Adds the products of 16 rows of the weight with kTiles times eight rows of activations, each warp and lane its share.
// `shared`: kColumnBytes of the warp. All warps of the block call it, which are kMatmulWarps.
template <int kType, int kTiles>
SIMT_DEVICE void multiply_columns_of(const char* weight, int64_t stride, unsigned count, unsigned vector, int k,
                                     const ColumnRows (&x)[kTiles], char* shared, float (&sums)[kTiles][4]) {
    using namespace simt;
    using F = Format<kType>;
    using P = ColumnKTile<kType>;
    constexpr unsigned kPairs = kColumnElements / 64;
    const unsigned groups = static_cast<unsigned>(k) / 32, k_tiles = (groups + 7) / 8;
    const int bytes = static_cast<int>(static_cast<unsigned>(k) / F::kBlockElements * F::kBlockBytes) + F::kPrefixBytes;
    if (warp() >= k_tiles) return;
    const ColumnStream<kType> stream(weight, static_cast<uint32_t>(stride), count, bytes, vector);
    MmaUnit<kType> unit(shared + kColumnStages * P::kStageBytes);
    const unsigned g = lane() / 4;
    MmaRowScales row_scales{1, 1};
    if constexpr (F::kPrefixBytes != 0) {
        row_scales.near = F::row_scale(weight + minimum(g, count - 1) * stride);
        row_scales.far = F::row_scale(weight + minimum(g + 8, count - 1) * stride);
    }
    unsigned stage = 0;  // of the k-tile that is copied
    for (int ahead = static_cast<int>(warp());; ahead += kMatmulWarps) {
        const int k_tile = ahead - static_cast<int>(kMatmulWarps * (kColumnStages - 1));
        if (k_tile >= static_cast<int>(k_tiles)) break;
        sync_warp();  // what lies in its place has been read
        if (ahead < static_cast<int>(k_tiles))
            stream.copy(static_cast<unsigned>(ahead), shared + P::kStageBytes * stage);
        copy_async_commit();
        stage = stage + 1 == kColumnStages ? 0 : stage + 1;  // the oldest
        if (k_tile < 0) continue;
        copy_async_wait<static_cast<int>(kColumnStages) - 1>();
        sync_warp();
        const char* rows = shared + P::kStageBytes * stage + stream.skew(static_cast<unsigned>(k_tile));
        const char* near = rows + P::kRow * g;
        unit.begin(rows, P::kRow, row_scales);
        const unsigned first_pair = kPairs * static_cast<unsigned>(k_tile);
        const unsigned pairs = minimum(kPairs, (groups + 1) / 2 - first_pair);
        ColumnRows of_k_tile[kTiles];
        SIMT_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) of_k_tile[tile] = x[tile].from(first_pair);
        const auto add = [&](unsigned pair) {
            MmaWords first, second;
            unit.load(near, near + 8 * P::kRow, pair, row_scales, first, second);
            SIMT_UNROLL
            for (int tile = 0; tile < kTiles; ++tile) {
                ColumnWords columns;
                columns.load<F::kOffsets>(of_k_tile[tile], pair);
                add_columns<kType>(first, second, columns, sums[tile]);
            }
        };
        // As many at once as there are registers for.
        constexpr bool kSixteen = F::kScaleElements == 16;
        constexpr unsigned kAtOnce = kSixteen && F::kOffsets                                          ? 1
                                     : kSixteen || F::kOffsets || MmaUnit<kType>::kSums || kTiles > 1 ? 2
                                                                                                      : kPairs;
        if (MmaUnit<kType>::kByHand && pairs == kPairs) {
            SIMT_KEEP_LOOP
            for (unsigned pair = 0; pair < kPairs; pair += kAtOnce) {
                SIMT_UNROLL
                for (unsigned i = 0; i < kAtOnce; ++i) add(pair + i);
            }
        } else {
            SIMT_KEEP_LOOP
            for (unsigned pair = 0; pair < pairs; ++pair) add(pair);
        }
    }
}

// Grid: x the outputs by 16, times a.row_tiles, so that blocks that read the same rows of the weight are neighbours; z
// the batch. a.row_tiles: the maximum of rows by 8 kTiles, or fewer. a.vectors: the bytes, a power of
// two up to 16, of which rows of the weight are multiples and at multiples; a.activation_bytes: of eight rows.
template <int kType, int kTiles>
SIMT_DEVICE void multiply_rows_mma(const Matmul& a) {
    using namespace simt;
    constexpr unsigned kRows = 8 * kTiles;
    SIMT_SHARED(UInt4, memory, kMatmulWarps * kColumnBytes<kType> / 16);
    const RowRange range = actual_rows(a.rows);
    const auto row_tiles = static_cast<unsigned>(a.row_tiles);
    const unsigned output = block_index().x / row_tiles * 16, batch = block_index().z;
    const unsigned count = minimum(static_cast<unsigned>(a.n) - output, 16u);
    char* shared = reinterpret_cast<char*>(memory) + warp() * kColumnBytes<kType>;
    const auto* weight = at<char>(a.weight, output * a.weight_row + batch * a.weight_batch);
    for (int first = static_cast<int>(block_index().x % row_tiles * kRows); first < range.end - range.begin;
         first += static_cast<int>(row_tiles * kRows)) {
        const auto rows = minimum(static_cast<unsigned>(range.end - range.begin - first), kRows);
        const auto rows_of = [&](unsigned tile) {
            const unsigned begin = 8 * tile < rows ? 8 * tile : 0;
            const int64_t tiles = (first + static_cast<int>(begin)) / kColumnRows;
            return ColumnRows::of(at<char>(a.activations, (tiles * a.batch + batch) * a.activation_bytes),
                                  minimum(rows - begin, 8u), a.k);
        };
        float sums[kTiles][4] = {};
        if constexpr (kTiles == 1) {
            const ColumnRows x[1] = {rows_of(0)};
            multiply_columns_of<kType, 1>(weight, a.weight_row, count, static_cast<unsigned>(a.vectors), a.k, x, shared,
                                          sums);
        } else {
            const ColumnRows x[2] = {rows_of(0), rows_of(1)};
            multiply_columns_of<kType, 2>(weight, a.weight_row, count, static_cast<unsigned>(a.vectors), a.k, x, shared,
                                          sums);
        }
        sync_block();
        // Sums of warps, by tile, column and row.
        auto* all = reinterpret_cast<float*>(memory);
        SIMT_UNROLL
        for (int tile = 0; tile < kTiles; ++tile) {
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j)
                all[128 * (kTiles * warp() + static_cast<unsigned>(tile)) +
                    16 * (2 * (lane() % 4) + static_cast<unsigned>(j) % 2) + lane() / 4 +
                    8 * (static_cast<unsigned>(j) / 2)] = sums[tile][j];
        }
        sync_block();
        const unsigned row = thread_index().x % 16;
        SIMT_UNROLL
        for (unsigned tile = 0; tile < kTiles; ++tile) {
            const unsigned column = 8 * tile + thread_index().x / 16;
            float sum = 0;
            SIMT_UNROLL
            for (unsigned w = 0; w < kMatmulWarps; ++w) sum += all[128 * (kTiles * w + tile) + thread_index().x];
            if (column < rows && row < count)
                at<float>(a.y, ((a.relative ? 0 : range.begin) + first + static_cast<int>(column)) * a.y_row +
                                   batch * a.y_batch)[output + row] = MmaUnit<kType>::kFactor * sum;
        }
        sync_block();
    }
}

// Blocks a multiprocessor for which registers are limited.
template <int kType>
constexpr int column_blocks(int rows) {
    using F = Format<kType>;
    constexpr bool kSixteen = F::kScaleElements == 16, kLarge = kType == TSR_TYPE_Q8_0 || kType == TSR_TYPE_Q3_K;
    const int blocks = 6 - (kSixteen || F::kOffsets ? 1 : 0) - (kLarge || (kSixteen && F::kOffsets) ? 1 : 0) -
                       (MmaUnit<kType>::kByHand ? 0 : 1);
    return rows == 8 ? blocks : blocks < 6 ? 3 : 4;
}

}  // namespace tessera::cuda_kernels

#define TESSERA_ROWS_MMA(name, id, rows)                                                                               \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps, (tessera::cuda_kernels::column_blocks<TSR_TYPE_##id>(rows))) \
    matmul_##name##_rows##rows(tessera::cuda_kernels::Matmul a) {                                                      \
        tessera::cuda_kernels::multiply_rows_mma<TSR_TYPE_##id, (rows) / 8>(a);                                        \
    }
#define TESSERA_ROWS_MMA_OF(name, id) TESSERA_ROWS_MMA(name, id, 8) TESSERA_ROWS_MMA(name, id, 16)
#else
#define TESSERA_ROWS_MMA_OF(name, id)
#endif
