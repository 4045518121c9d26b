// Products of few rows with a weight of a block format: a warp an output.
//
// A row of the weight is read as what it is, a stream of bytes, in vectors of 16 that the lanes of the warp share out,
// so that memory sees whole sectors and a whole k-tile of a row in flight whatever the alignment of the format's
// blocks. The vectors lie in shared memory for a moment, where each lane takes the blocks of its elements, 32 at a
// time, as two sub-blocks (sub_block.hpp). While a k-tile of the row is multiplied, the next one is on its way.
#pragma once

#include "../formats/sub_block_bits.hpp"
#include "../rows.hpp"
#include "columns.hpp"
#include "few_rows_mma.hpp"

namespace tessera::cuda_kernels {

// Larger units take more registers than tiles of many rows leave.
template <int kType, int kTile>
struct UnitsOfTile : Units<kType> {};
template <int kType, int kTile>
requires(kTile > 2 || (kTile == 2 && SIMT_ARCH < 610)) struct UnitsOfTile<kType, kTile> : PairUnits<kType> {
};

// How much of a row lies in shared memory at once.
template <class F, class U>
struct KTile {
    static constexpr int kUnitElements = 16 * U::kSubBlocks;
    static constexpr int kStepBytes = 32 * kUnitElements / F::kBlockElements * F::kBlockBytes;  // a unit for each lane
    static constexpr int kMaximumSteps = 2200 / kStepBytes;
    static constexpr int kSteps = kMaximumSteps < 1 ? 1 : kMaximumSteps > 8 ? 8 : kMaximumSteps;
    static constexpr int kBytes = kSteps * kStepBytes;
    static constexpr int kVectors = (kBytes + 15 + 15) / 16;  // wherever the k-tile begins
    static constexpr int kLoads = (kVectors + 31) / 32;
};

// Bytes of a k-tile on their way from global memory to shared memory.
template <class P>
class Transfer {
  public:
    // The bytes begin..end of what begins at `from`, a k-tile at most. Bytes before `from`, of the vector that it lies
    // in, are read, too; none after the end.
    SIMT_DEVICE void load(const char* from, int bytes) {
        using namespace simt;
        skew_ = static_cast<int>(reinterpret_cast<uintptr_t>(from) & 15);
        const char* aligned = from - skew_;
        end_ = skew_ + bytes;
        SIMT_UNROLL
        for (int i = 0; i < P::kLoads; ++i) {
            const int vector = static_cast<int>(lane()) + 32 * i;
            if (16 * vector + 16 <= end_) vectors_[i] = load_global<UInt4>(aligned + 16 * vector);
        }
        if (static_cast<int>(lane()) < end_ % 16) tail_ = load_global<uint8_t>(aligned + end_ / 16 * 16 + lane());
    }

    // To memory of the warp for kVectors vectors; returns where the first byte is. Other lanes' bytes are there after
    // sync_warp().
    SIMT_DEVICE const char* store(simt::UInt4* k_tile) const {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < P::kLoads; ++i) {
            const int vector = static_cast<int>(lane()) + 32 * i;
            if (16 * vector + 16 <= end_) k_tile[vector] = vectors_[i];
        }
        char* bytes = reinterpret_cast<char*>(k_tile);
        if (static_cast<int>(lane()) < end_ % 16) bytes[end_ / 16 * 16 + lane()] = static_cast<char>(tail_);
        return bytes + skew_;
    }

  private:
    simt::UInt4 vectors_[P::kLoads];
    uint8_t tail_ = 0;
    int skew_, end_;
};

// A row of activations as int8, and the product of a unit with what it meets there.
struct Int8Row {
    const char* codes;
    int scales_begin, sums_begin;

    SIMT_DEVICE static Int8Row of(const char* row, int k) {
        return {row, static_cast<int>(int8_scales_begin(k)), static_cast<int>(int8_sums_begin(k))};
    }
    template <class F, class U>
    SIMT_DEVICE void add(float& sum, const SubBlock (&sub_blocks)[U::kSubBlocks], unsigned unit) const {
        using namespace simt;
        float d[U::kSubBlocks];
        load_scales<U>(unit, d);
        SIMT_UNROLL
        for (int i = 0; i < U::kSubBlocks; i += 2) {
            const unsigned a = U::index(unit, i), b = U::index(unit, i + 1);
            const int first = dot(sub_blocks[i], load_global<UInt4>(codes + 16 * a));
            const int second = dot(sub_blocks[i + 1], load_global<UInt4>(codes + 16 * b));
            if constexpr (F::kScaleElements == 32 && U::kNeighbours) {
                sum = fmaf(sub_blocks[i].scale * d[i], static_cast<float>(first + second), sum);
            } else {
                sum = fmaf(sub_blocks[i].scale * d[i], static_cast<float>(first), sum);
                sum = fmaf(sub_blocks[i + 1].scale * d[i + 1], static_cast<float>(second), sum);
            }
            if constexpr (F::kOffsets && F::kScaleElements == 32 && U::kNeighbours) {
                const auto s = load_global<Float2>(sums(a));
                sum = fmaf(sub_blocks[i].offset, s.x + s.y, sum);
            } else if constexpr (F::kOffsets) {
                sum = fmaf(sub_blocks[i].offset, load_global<float>(sums(a)), sum);
                sum = fmaf(sub_blocks[i + 1].offset, load_global<float>(sums(b)), sum);
            }
        }
    }
    // The same of codes that lie interleaved.
    SIMT_DEVICE void add(float& sum, const NibbleLevels& w, unsigned pair) const {
        using namespace simt;
        const auto a = load_global<UInt4>(codes + 32 * pair), b = load_global<UInt4>(codes + 32 * pair + 16);
        int of_low = 0, of_high = 0;
        add_nibbles(w.levels, w.words[0], a.x, a.y, of_low, of_high);
        add_nibbles(w.levels, w.words[1], a.z, a.w, of_low, of_high);
        add_nibbles(w.levels, w.words[2], b.x, b.y, of_low, of_high);
        add_nibbles(w.levels, w.words[3], b.z, b.w, of_low, of_high);
        sum = fmaf(w.scale * load_global<float>(scales(pair)), static_cast<float>(of_low + of_high), sum);
    }

  private:
    SIMT_DEVICE const char* scales(unsigned pair) const { return codes + scales_begin + 4 * pair; }
    SIMT_DEVICE const char* sums(unsigned sub_block) const { return codes + sums_begin + 4 * sub_block; }
    template <class U>
    SIMT_DEVICE void load_scales(unsigned unit, float (&d)[U::kSubBlocks]) const {
        using namespace simt;
        if constexpr (U::kSubBlocks == 2) {
            d[0] = d[1] = load_global<float>(scales(unit));
        } else if constexpr (U::kNeighbours) {
            const auto two = load_global<Float2>(scales(2 * unit));
            d[0] = d[1] = two.x, d[2] = d[3] = two.y;
        } else {
            const auto four = load_global<Float4>(scales(unit / 2 * 4));
            d[0] = four.x, d[1] = four.y, d[2] = four.z, d[3] = four.w;
        }
    }
    SIMT_DEVICE static void add_nibbles(const Table16& levels, uint32_t w, uint32_t x0, uint32_t x1, int& of_low,
                                        int& of_high) {
        if constexpr (SIMT_ARCH >= 610) {
            using simt::byte_permute;
            using simt::dp4a;
            const uint32_t v = w ^ 0x88888888u;
            const int first = static_cast<int>(x0), second = static_cast<int>(x1);
            of_low = dp4a(static_cast<int>(byte_permute(levels.words[0], levels.words[1], w)), first, of_low);
            of_high = dp4a(static_cast<int>(byte_permute(levels.words[2], levels.words[3], v)), first, of_high);
            of_low = dp4a(static_cast<int>(byte_permute(levels.words[0], levels.words[1], w >> 16)), second, of_low);
            of_high = dp4a(static_cast<int>(byte_permute(levels.words[2], levels.words[3], v >> 16)), second, of_high);
        }
    }
    SIMT_DEVICE static int dot(const SubBlock& w, const simt::UInt4& x) {
        if constexpr (SIMT_ARCH >= 610) {
            using simt::dp4a;
            int sum = dp4a(static_cast<int>(w.codes[0]), static_cast<int>(x.x), 0);
            sum = dp4a(static_cast<int>(w.codes[1]), static_cast<int>(x.y), sum);
            sum = dp4a(static_cast<int>(w.codes[2]), static_cast<int>(x.z), sum);
            return dp4a(static_cast<int>(w.codes[3]), static_cast<int>(x.w), sum);
        }
        return 0;
    }
};

// The same as f32: for cards without dp4a, on which f32 is as fast as anything.
struct FloatRow {
    const char* values;
    int sums_begin;

    SIMT_DEVICE static FloatRow of(const char* row, int k) { return {row, static_cast<int>(float_sums_begin(k))}; }
    template <class F, class U>
    SIMT_DEVICE void add(float& sum, const SubBlock (&sub_blocks)[U::kSubBlocks], unsigned unit) const {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < U::kSubBlocks; ++i) {
            const unsigned index = U::index(unit, i);
            sum = fmaf(sub_blocks[i].scale, dot(sub_blocks[i], values + 64 * index), sum);
            if constexpr (F::kOffsets)
                sum = fmaf(sub_blocks[i].offset, load_global<float>(values + sums_begin + 4 * index), sum);
        }
    }

  private:
    // A float between 2^23 and 2^24 counts ones: its low byte can be put there, biased by 128 to be unsigned.
    SIMT_DEVICE static float code(uint32_t biased, uint32_t selector) {
        return simt::bits_as<float>(simt::byte_permute(biased, 0x4B000000u, selector)) - 8388736.f;
    }
    SIMT_DEVICE static float dot(const SubBlock& w, const char* from) {
        using simt::fmaf;
        float sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            const auto x = simt::load_global<simt::Float4>(from + 16 * i);
            const uint32_t biased = w.codes[i] ^ 0x80808080u;
            sum = fmaf(code(biased, 0x7440), x.x, sum);
            sum = fmaf(code(biased, 0x7441), x.y, sum);
            sum = fmaf(code(biased, 0x7442), x.z, sum);
            sum = fmaf(code(biased, 0x7443), x.w, sum);
        }
        return sum;
    }
};

#if SIMT_ARCH >= 610
using ActivationRow = Int8Row;
#else
using ActivationRow = FloatRow;
#endif

template <int kType, int kTile>
inline constexpr int kKTileVectors = KTile<Format<kType>, UnitsOfTile<kType, kTile>>::kVectors;

// Adds the dot products of a row of the weight with rows of activations, each lane its share of them. `k_tile`: shared
// memory of the warp, kKTileVectors<kType, kTile> vectors. All lanes of the warp call it.
template <int kType, int kTile>
SIMT_DEVICE void add_products(const char* weight, int k, const ActivationRow (&x)[kTile], float (&sums)[kTile],
                              simt::UInt4* k_tile) {
    using namespace simt;
    using F = Format<kType>;
    using U = UnitsOfTile<kType, kTile>;
    using P = KTile<F, U>;
    const float row_scale = F::row_scale(weight);
    const char* from = weight + F::kPrefixBytes;
    const int units = k / P::kUnitElements;
    int left = k / F::kBlockElements * F::kBlockBytes;
    Transfer<P> transfer;
    transfer.load(from, minimum(left, P::kBytes));
    for (int first = 0; first < units; first += 32 * P::kSteps) {
        sync_warp();  // the k-tile before has been read
        const char* blocks = transfer.store(k_tile);
        sync_warp();
        from += P::kBytes;
        left -= P::kBytes;
        if (left > 0) transfer.load(from, minimum(left, P::kBytes));
        const unsigned end = static_cast<unsigned>(minimum(units - first, 32 * P::kSteps));
        for (unsigned unit = lane(); unit < end; unit += 32) {
            if constexpr (SIMT_ARCH >= 610 && reads_interleaved(kType)) {
                const NibbleLevels w = F::nibbles_at(blocks, unit, row_scale);
                SIMT_UNROLL
                for (int t = 0; t < kTile; ++t) x[t].add(sums[t], w, static_cast<unsigned>(first) + unit);
            } else {
                SubBlock sub_blocks[U::kSubBlocks];
                U::load(blocks, unit, row_scale, sub_blocks);
                SIMT_UNROLL
                for (int t = 0; t < kTile; ++t)
                    x[t].template add<F, U>(sums[t], sub_blocks, static_cast<unsigned>(first) + unit);
            }
        }
    }
}

// Grid: x the outputs by kMatmulWarps, y the maximum of rows by kTile or fewer, z the batch.
template <int kType, int kTile>
SIMT_DEVICE void multiply_few(const Matmul& a) {
    using namespace simt;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * (kKTileVectors<kType, kTile>));
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int batch = static_cast<int>(block_index().z), rows = range.end - range.begin;
    const auto* weight = at<char>(a.weight, output * a.weight_row + batch * a.weight_batch);
    for (int first = static_cast<int>(block_index().y) * kTile; first < rows;
         first += static_cast<int>(grid_size().y) * kTile) {
        ActivationRow x[kTile];
        float sums[kTile];
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            // Rows past the last are the last one again, and not written.
            const int64_t row = minimum(first + t, rows - 1);
            x[t] = ActivationRow::of(at<char>(a.activations, (row * a.batch + batch) * a.activation_bytes), a.k);
            sums[t] = 0;
        }
        add_products<kType>(weight, a.k, x, sums, k_tiles + warp() * kKTileVectors<kType, kTile>);
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            const float sum = warp_sum(sums[t]);
            if (lane() == 0 && first + t < rows)
                *at<float>(a.y, (range.begin + first + t) * a.y_row + batch * a.y_batch +
                                    4 * static_cast<int64_t>(output)) = sum;
        }
    }
}

// Grid: x the outputs by kMatmulWarps, y the maximum of rows or fewer, z the slots.
template <int kType>
SIMT_DEVICE void multiply_by_id(const MatmulId& m) {
    using namespace simt;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * (kKTileVectors<kType, 1>));
    const Matmul& a = m.matmul;
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int slot = static_cast<int>(block_index().z);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int id = *at<int32_t>(m.ids, row * m.ids_row + slot * m.ids_slot);
        float sums[1] = {0};
        if (id >= 0 && id < m.experts) {
            const int64_t stored = static_cast<int64_t>(row - range.begin) * a.batch + slot % a.batch;
            const ActivationRow x[1] = {ActivationRow::of(at<char>(a.activations, stored * a.activation_bytes), a.k)};
            add_products<kType>(at<char>(a.weight, output * a.weight_row + id * a.weight_batch), a.k, x, sums,
                                k_tiles + warp() * kKTileVectors<kType, 1>);
        } else if (id != -1) {
            sums[0] = bits_as<float>(0x7FFFFFFFu);
        }
        const float sum = warp_sum(sums[0]);
        if (lane() == 0) *at<float>(a.y, row * a.y_row + slot * a.y_batch + 4 * static_cast<int64_t>(output)) = sum;
    }
}

}  // namespace tessera::cuda_kernels

namespace tessera::cuda_kernels {

// Blocks a multiprocessor for which registers are limited: as many as leave enough to a lane for what it takes at once.
// With those of one row every card has enough bytes in flight (testing/cuda_code/cuda_static).
template <int kType, int kTile>
constexpr int few_rows_blocks() {
    // Code for Pascal and Volta needs more of them, and so do large units and formats of three and five bits.
    constexpr bool kLarge = kType == TSR_TYPE_Q3_K || kType == TSR_TYPE_Q5_K || kType == TSR_TYPE_Q6_K ||
                            kType == TSR_TYPE_IQ3_K || kType == TSR_TYPE_IQ3_KS || kType == TSR_TYPE_IQ5_K ||
                            kType == TSR_TYPE_IQ5_KS;
    if (kTile == 1) return SIMT_ARCH < 800 || kLarge ? 4 : 5;
    return kTile == 8 || (kTile == 4 && SIMT_ARCH < 610) ? 2 : 3;
}

// Tiles that are computed: in f32, 8 rows take more registers than there are. The loop over rows takes the others.
constexpr int computed_tile(int tile) {
    return SIMT_ARCH < 610 && tile > 4 ? 4 : tile;
}

}  // namespace tessera::cuda_kernels

// The kernels of a type by its name and its TSR_TYPE_*.
#define TESSERA_FEW_ROWS(name, id, tile)                                                                   \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps,                                                  \
                (tessera::cuda_kernels::few_rows_blocks<TSR_TYPE_##id, tile>()))                           \
    matmul_##name##_tile##tile(tessera::cuda_kernels::Matmul a) {                                          \
        tessera::cuda_kernels::multiply_few<TSR_TYPE_##id, tessera::cuda_kernels::computed_tile(tile)>(a); \
    }
#if SIMT_ARCH >= 800
#define TESSERA_SEVERAL_ROWS_OF(name, id) \
    TESSERA_ROWS_MMA_OF(name, id)         \
    TESSERA_COLUMNS_OF(name, id)
#else
#define TESSERA_SEVERAL_ROWS_OF(name, id) \
    TESSERA_FEW_ROWS(name, id, 2)         \
    TESSERA_FEW_ROWS(name, id, 4)         \
    TESSERA_FEW_ROWS(name, id, 8)         \
    TESSERA_COLUMNS_OF(name, id)
#endif
// Of one row, of a weight that may lie anywhere.
#define TESSERA_ONE_ROW_KERNEL(name, id) TESSERA_FEW_ROWS(name, id, 1)
#define TESSERA_ONE_ROW_OF(name, id)                                          \
    TESSERA_ONE_ROW_BY_LANES(TESSERA_ONE_ROW_KERNEL, name, id)                \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps,                     \
                (tessera::cuda_kernels::few_rows_blocks<TSR_TYPE_##id, 1>())) \
    matmul_id_##name(tessera::cuda_kernels::MatmulId m) {                     \
        tessera::cuda_kernels::multiply_by_id<TSR_TYPE_##id>(m);              \
    }
#define TESSERA_FEW_ROWS_OF(name, id) \
    TESSERA_SEVERAL_ROWS_OF(name, id) \
    TESSERA_UNALIGNED(TESSERA_ONE_ROW_OF, name, id)
