// Products of one row of activations with rows of a weight, several rows a warp: they share the loads of activations,
// the warp's start and the sum over its lanes. For the formats of wide_units.hpp, if rows of the weight are multiples
// of 16 or 8 bytes, and at multiples of that.
//
// As with other formats (few_rows.hpp), rows are read as streams of vectors, through shared memory: 2048 elements of
// each row at once, 64 for each lane. The next ones are on their way meanwhile.
#pragma once

#include "../arguments.hpp"
#include "../formats/wide_formats.hpp"
#include "../formats/wide_units.hpp"
#include "../overlap.hpp"
#include "../rows.hpp"

namespace tessera::cuda_kernels {

inline constexpr int kWideElements = 64;  // of a lane

// K-tiles of rows on their way from global memory to shared memory, in vectors of type Vector, of which rows are
// multiples and at multiples. What is past the end of rows is not loaded, so that anything may be stored there.
template <int kKTileBytes, int kOutputs, class Vector>
class WideStream {
    static constexpr int kVectors = kKTileBytes / static_cast<int>(sizeof(Vector)), kLoads = (kVectors + 31) / 32;
    static_assert(kVectors * sizeof(Vector) == kKTileBytes);

  public:
    static constexpr int kSharedBytes = kOutputs * kKTileBytes;  // of a warp

    // The first k-tile of rows of `bytes` bytes.
    SIMT_DEVICE void begin(const char* const (&rows)[kOutputs], int bytes) {
        left_ = bytes - kBytes * static_cast<int>(simt::lane());
        SIMT_UNROLL
        for (int r = 0; r < kOutputs; ++r) next_[r] = rows[r] + kBytes * simt::lane();
        load();
    }
    // Writes a k-tile to memory of the warp, row after row; other lanes' bytes are there after sync_warp().
    SIMT_DEVICE void store(char* shared) const {
        auto* mine = reinterpret_cast<Vector*>(shared) + simt::lane();
        SIMT_UNROLL
        for (int i = 0; i < kLoads; ++i) {
            if (!of_k_tile(i)) continue;  // what is past the end of the row is not read
            SIMT_UNROLL
            for (int r = 0; r < kOutputs; ++r) mine[r * kVectors + 32 * i] = vectors_[r][i];
        }
    }
    // The next k-tile, of which there is one.
    SIMT_DEVICE void next() {
        left_ -= kKTileBytes;
        SIMT_UNROLL
        for (int r = 0; r < kOutputs; ++r) next_[r] += kKTileBytes;
        load();
    }

  private:
    static constexpr int kBytes = sizeof(Vector);

    SIMT_DEVICE static bool of_k_tile(int i) {
        return 32 * i + 32 <= kVectors || static_cast<int>(simt::lane()) < kVectors - 32 * i;
    }
    SIMT_DEVICE void load() {
        SIMT_UNROLL
        for (int i = 0; i < kLoads; ++i) {
            if (!of_k_tile(i) || left_ <= 32 * kBytes * i) continue;
            SIMT_UNROLL
            for (int r = 0; r < kOutputs; ++r) vectors_[r][i] = simt::load_global<Vector>(next_[r] + 32 * kBytes * i);
        }
    }

    const char* next_[kOutputs];  // this lane's first vector of the k-tile
    int left_;                    // bytes from there to the end of the row
    Vector vectors_[kOutputs][kLoads];
};

template <int kType, int kOutputs, class Vector>
using WideStreamOf = WideStream<WideUnit<kType>::kKTileBytes, kOutputs, Vector>;

// Adds the products of the rows that `stream` has begun with, each lane its share of them. When no k-tile of them is
// left to load, `then` is called, so that other rows can be begun with. All lanes of the warp call it.
template <int kType, class Vector, int kOutputs, class Then>
SIMT_DEVICE void add_products(WideStreamOf<kType, kOutputs, Vector>& stream, const WideUnit<kType>& unit, int k,
                              const char* activations, float (&sums)[kOutputs], char* shared, Then then) {
    using namespace simt;
    const unsigned units = static_cast<unsigned>(k) / kWideElements;
    // As int8_scales_begin() and int8_sums_begin() say, with numbers of 32 bits.
    const unsigned scales_begin = 64 * units, sums_begin = scales_begin + (8 * units + 15 & ~15u);
    LaneRow x = WideUnit<kType>::row(activations, scales_begin, sums_begin, lane());
    for (unsigned first = 0; first < units; first += 32) {
        const bool mine = first + lane() < units;
        typename WideUnit<kType>::Activations of_unit;
        if (mine) of_unit = unit.load(x);
        sync_warp();  // the k-tile before has been read
        stream.store(shared);
        sync_warp();
        if (first + 32 < units) {
            stream.next();
        } else {
            then();
        }
        if (mine) {
            const char* from = shared + unit.begin();
            SIMT_UNROLL
            for (int r = 0; r < kOutputs; ++r)
                sums[r] = unit.add(from + r * WideUnit<kType>::kKTileBytes, of_unit, sums[r]);
        }
        x.next();
    }
}

// The sums over the warp: of row r in the lanes from 32 / kOutputs * r on.
template <int kOutputs>
SIMT_DEVICE float sums_of_rows(const float (&sums)[kOutputs]) {
    using namespace simt;
    static_assert(kOutputs == 2 || kOutputs == 4);
    float left[kOutputs];
    SIMT_UNROLL
    for (int r = 0; r < kOutputs; ++r) left[r] = sums[r];
    SIMT_UNROLL
    for (int rows = kOutputs / 2, mask = 16; rows > 0; rows /= 2, mask /= 2) {
        const bool upper = (lane() & static_cast<unsigned>(mask)) != 0;
        SIMT_UNROLL
        for (int r = 0; r < rows; ++r) {
            const float other = shuffle_xor(upper ? left[r] : left[r + rows], mask);
            left[r] = (upper ? left[r + rows] : left[r]) + other;
        }
    }
    float sum = left[0];
    SIMT_UNROLL
    for (int mask = 16 / kOutputs; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    return sum;
}

// Whether this lane has such a sum, and of which row.
template <int kOutputs>
SIMT_DEVICE bool has_sum() {
    return simt::lane() % (32 / kOutputs) == 0;
}
template <int kOutputs>
SIMT_DEVICE unsigned row_of_sum() {
    return simt::lane() / (32 / kOutputs);
}

// The rows of a weight of `n` from row `first` on, which lies at `address`; past the last one it is the last one again,
// whose result is not written.
template <int kOutputs>
SIMT_DEVICE void rows_from(const char* address, int64_t stride, unsigned first, int n, const char* (&rows)[kOutputs]) {
    rows[0] = address;
    SIMT_UNROLL
    for (int r = 1; r < kOutputs; ++r)
        rows[r] = rows[r - 1] + (first + static_cast<unsigned>(r) < static_cast<unsigned>(n) ? stride : 0);
}
template <int kType>
SIMT_DEVICE int row_bytes_of(int k) {
    using F = Format<kType>;
    return static_cast<int>(static_cast<unsigned>(k) / F::kBlockElements * F::kBlockBytes);
}

// Asks for the rows of a weight that the warp will read: what two lines of 128 bytes a lane hold of them. All lanes of
// the warp call it.
SIMT_DEVICE void ask_for_rows(const char* first, int64_t stride, unsigned rows, int bytes) {
    using namespace simt;
    const unsigned span = (rows - 1) * static_cast<unsigned>(stride) + static_cast<unsigned>(bytes);
    const unsigned at = 128 * lane();
    if (stride != bytes) return;  // only what lies together
    if (at < span) ask_for(first + at);
    if (at + 4096 < span) ask_for(first + at + 4096);
}

// Grid: x the outputs by kMatmulWarps times outputs_of_warp(), y the maximum of rows, z the batch.
template <int kType, class Vector>
SIMT_DEVICE void multiply_row(const Matmul& a) {
    using namespace simt;
    constexpr int kOutputs = outputs_of_warp(kType);
    using Stream = WideStreamOf<kType, kOutputs, Vector>;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * Stream::kSharedBytes / 16);
    const unsigned output = (block_index().x * kMatmulWarps + warp()) * kOutputs, n = static_cast<unsigned>(a.n);
    const unsigned row = block_index().y, batch = block_index().z;
    if (output < n)
        ask_for_rows(at<char>(a.weight, output * a.weight_row + batch * a.weight_batch), a.weight_row,
                     minimum(static_cast<unsigned>(kOutputs), n - output), row_bytes_of<kType>(a.k));
    const RowRange range = awaited_rows(a.rows);
    if (output >= n || static_cast<int>(row) >= range.end - range.begin) return;
    const char* weight[kOutputs];
    rows_from(at<char>(a.weight, output * a.weight_row + batch * a.weight_batch), a.weight_row, output, a.n, weight);
    Stream stream;
    stream.begin(weight, row_bytes_of<kType>(a.k));
    const WideUnit<kType> unit(lane());
    float sums[kOutputs] = {};
    add_products<kType, Vector>(
        stream, unit, a.k, at<char>(a.activations, (row * static_cast<unsigned>(a.batch) + batch) * a.activation_bytes),
        sums, reinterpret_cast<char*>(k_tiles) + warp() * Stream::kSharedBytes, [] {});
    const float sum = sums_of_rows(sums);
    const unsigned mine = output + row_of_sum<kOutputs>();
    if (has_sum<kOutputs>() && mine < n)
        at<float>(a.y, (static_cast<unsigned>(range.begin) + row) * a.y_row + batch * a.y_batch)[mine] = sum;
}

// Grid: x the outputs by kMatmulWarps times outputs_of_warp(), y the maximum of rows, z the slots.
template <int kType, class Vector>
SIMT_DEVICE void multiply_row_by_id(const MatmulId& m) {
    using namespace simt;
    constexpr int kOutputs = outputs_of_warp(kType);
    using Stream = WideStreamOf<kType, kOutputs, Vector>;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * Stream::kSharedBytes / 16);
    const Matmul& a = m.matmul;
    const RowRange range = actual_rows(a.rows);
    const unsigned output = (block_index().x * kMatmulWarps + warp()) * kOutputs, n = static_cast<unsigned>(a.n);
    const unsigned row = block_index().y, slot = block_index().z;
    if (output >= n || static_cast<int>(row) >= range.end - range.begin) return;
    const unsigned of_all = static_cast<unsigned>(range.begin) + row;
    const int id = *at<int32_t>(m.ids, of_all * m.ids_row + slot * m.ids_slot);
    float sums[kOutputs] = {};
    if (id >= 0 && id < m.experts) {
        const char* weight[kOutputs];
        rows_from(at<char>(a.weight, output * a.weight_row + static_cast<unsigned>(id) * a.weight_batch), a.weight_row,
                  output, a.n, weight);
        Stream stream;
        stream.begin(weight, row_bytes_of<kType>(a.k));
        const WideUnit<kType> unit(lane());
        const unsigned stored = row * static_cast<unsigned>(a.batch) + slot % static_cast<unsigned>(a.batch);
        add_products<kType, Vector>(stream, unit, a.k, at<char>(a.activations, stored * a.activation_bytes), sums,
                                    reinterpret_cast<char*>(k_tiles) + warp() * Stream::kSharedBytes, [] {});
    } else if (id != -1) {
        SIMT_UNROLL
        for (int r = 0; r < kOutputs; ++r) sums[r] = bits_as<float>(0x7FFFFFFFu);
    }
    const float sum = sums_of_rows(sums);
    const unsigned mine = output + row_of_sum<kOutputs>();
    if (has_sum<kOutputs>() && mine < n) at<float>(a.y, of_all * a.y_row + slot * a.y_batch)[mine] = sum;
}

// Blocks a multiprocessor for which registers are limited.
template <int kType>
constexpr int one_row_blocks() {
    if (kType == TSR_TYPE_Q6_K) return 3;
    return outputs_of_warp(kType) > 2 ? 4 : 5;
}

}  // namespace tessera::cuda_kernels

// The kernels of a type, with the suffix that says how rows of the weight are read.
#define TESSERA_ONE_ROW_AS(name, id, suffix, Vector)                                                     \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps, (tessera::cuda_kernels::one_row_blocks<id>())) \
    matmul_##name##_tile1##suffix(tessera::cuda_kernels::Matmul a) {                                     \
        tessera::cuda_kernels::multiply_row<id, Vector>(a);                                              \
    }                                                                                                    \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps, (tessera::cuda_kernels::one_row_blocks<id>())) \
    matmul_id_##name##suffix(tessera::cuda_kernels::MatmulId m) {                                        \
        tessera::cuda_kernels::multiply_row_by_id<id, Vector>(m);                                        \
    }
// Of a format whose rows may lie anywhere; of one whose rows begin at multiples of 8, or of 16 bytes: where its codes
// are int8 it needs no other kernels (wide_formats.hpp).
#if SIMT_ARCH >= 610
#define TESSERA_ONE_ROW(name, id)                               \
    TESSERA_ONE_ROW_AS(name, TSR_TYPE_##id, _by16, simt::UInt4) \
    TESSERA_ONE_ROW_AS(name, TSR_TYPE_##id, _by8, simt::UInt2)
#define TESSERA_ONE_ROW_BY_8(name, id) TESSERA_ONE_ROW(name, id)
#define TESSERA_ONE_ROW_BY_16(name, id) TESSERA_ONE_ROW_AS(name, TSR_TYPE_##id, _by16, simt::UInt4)
#else
#define TESSERA_ONE_ROW(name, id)
#define TESSERA_ONE_ROW_BY_8(name, id) TESSERA_ONE_ROW_OF(name, id)
#define TESSERA_ONE_ROW_BY_16(name, id) TESSERA_ONE_ROW_OF(name, id)
#endif
