// Products of one row of activations with rows of iq4_xs by the tensor cores, on cards that have mma of int8. With dp4a
// (one_row.hpp) instructions rather than the weight's bytes would bound them on the fastest cards.
//
// A block takes 16 rows of the weight, the rows of an mma's first operand. Its warps share the length of the rows: each
// takes two blocks of 256 elements of all 16 rows, a k-tile, then those that come after the other warps'.
//
// Which elements the places of k stand for is free as long as both operands agree. So lane (g, t) = (lane / 4, lane %
// 4) takes groups (of 32 elements) 2 t and 2 t + 1 of rows g and g + 8 as they lie. Of the second operand, column n has
// the activations of group n in the places of the lanes with t = n / 2, and zeros in all others: a column of the result
// is the sums of one group, as scales need them, and a lane is given the sums of its own groups and rows.
#pragma once

#include "one_row.hpp"

#if SIMT_ARCH >= 800
namespace tessera::cuda_kernels {

inline constexpr unsigned kMmaRows = 16;
static_assert(kMmaRows == kMatmulWarps * outputs_of_warp(TSR_TYPE_IQ4_XS));  // the grid is that of one_row.hpp
inline constexpr unsigned kMmaRowBytes = 2 * sizeof(formats::BlockIq4Xs);    // of a k-tile
inline constexpr unsigned kMmaKTileBytes = kMmaRows * kMmaRowBytes;

// Rows of a weight, `stride` bytes apart, of which there are `count`; past them it is the last one again.
struct MmaRows {
    const char* first;
    uint32_t stride;
    unsigned count;
};

// K-tiles on their way from global to shared memory, in vectors of type Vector, of which rows are multiples and at
// multiples.
template <class Vector>
class MmaStream {
    static constexpr unsigned kVector = sizeof(Vector), kVectors = kMmaRowBytes / kVector;
    // Eight lanes a row; what is left of rows is taken at once.
    static constexpr unsigned kLanes = 8, kRows = 32 / kLanes, kSteps = kMmaRows / kRows;
    static constexpr unsigned kLoads = kVectors / kLanes, kWhole = kLoads * kLanes, kRest = kVectors - kWhole;
    static_assert(kMmaRowBytes % kVector == 0 && kRest * kMmaRows <= 32);

  public:
    // The k-tile `k_tile` of rows, and where it goes.
    SIMT_DEVICE MmaStream(const MmaRows& rows, unsigned k_tile, int bytes, char* shared)
        : from_(rows.first + kMmaRowBytes * k_tile), left_(bytes - static_cast<int>(kMmaRowBytes * k_tile)) {
        using namespace simt;
        const unsigned row = lane() / kLanes, column = kVector * (lane() % kLanes);
        const unsigned row_of_rest = lane() / kRest, column_of_rest = kVector * (kWhole + lane() % kRest);
        SIMT_UNROLL
        for (unsigned i = 0; i < kSteps; ++i)
            rows_[i] = column + minimum(row + kRows * i, rows.count - 1) * rows.stride;
        rest_ = column_of_rest + minimum(row_of_rest, rows.count - 1) * rows.stride;
        to_ = shared + kMmaRowBytes * row + column;
        to_rest_ = shared + kMmaRowBytes * row_of_rest + column_of_rest;
        load();
    }
    // Bytes from the beginning of the k-tile to the end of a row.
    SIMT_DEVICE int left() const { return left_; }
    // Writes the k-tile, row after row; other lanes' bytes are there after sync_warp().
    SIMT_DEVICE void store() const {
        SIMT_UNROLL
        for (unsigned i = 0; i < kSteps; ++i) {
            SIMT_UNROLL
            for (unsigned j = 0; j < kLoads; ++j)
                if (of_row(simt::lane() % kLanes + kLanes * j)) {
                    *reinterpret_cast<Vector*>(to_ + kRows * kMmaRowBytes * i + kVector * kLanes * j) = vectors_[i][j];
                }
        }
        if (has_rest()) *reinterpret_cast<Vector*>(to_rest_) = vector_of_rest_;
    }
    // The k-tile that is `k_tiles` further, if there is one.
    SIMT_DEVICE void next(unsigned k_tiles) {
        left_ -= static_cast<int>(kMmaRowBytes * k_tiles);
        if (left_ <= 0) return;
        from_ += kMmaRowBytes * k_tiles;
        load();
    }

  private:
    // Rows of whole k-tiles only are multiples of 16 bytes; the last k-tile of others is a block.
    SIMT_DEVICE bool of_row(unsigned vector) const {
        return kVector == 16 || static_cast<int>(kVector * vector) < left_;
    }
    SIMT_DEVICE bool has_rest() const {
        return simt::lane() < kRest * kMmaRows && of_row(kWhole + simt::lane() % kRest);
    }
    SIMT_DEVICE void load() {
        SIMT_UNROLL
        for (unsigned i = 0; i < kSteps; ++i) {
            SIMT_UNROLL
            for (unsigned j = 0; j < kLoads; ++j)
                if (of_row(simt::lane() % kLanes + kLanes * j))
                    vectors_[i][j] = simt::load_global<Vector>(from_ + rows_[i] + kVector * kLanes * j);
        }
        if (has_rest()) vector_of_rest_ = simt::load_global<Vector>(from_ + rest_);
    }

    const char* from_;
    int left_;
    uint32_t rows_[kSteps], rest_;  // from there to this lane's vectors
    char *to_, *to_rest_;
    Vector vectors_[kSteps][kLoads], vector_of_rest_;
};

// Activations of a block. Codes are zeros but in the eight lanes that have a group of them.
struct MmaActivations {
    uint32_t codes[8] = {};
    simt::Float2 scales;
};

// The products of blocks of 256 elements: what of it is the same for all of them.
class MmaLevels {
    static constexpr Table16 kLevels = sub_block_bits::sum_table(formats::kIq4Values);
    static_assert(sub_block_bits::is_sum_table(kLevels, formats::kIq4Values, 0));

  public:
    // Of k-tiles in `shared`.
    SIMT_DEVICE MmaLevels(const char* shared) {
        const unsigned group = simt::lane() / 4, pair = simt::lane() % 4, odd = pair % 2;
        head_ = shared + kMmaRowBytes * group;
        low_scales_ = head_ + 4 + pair;
        first_ = head_ + 8 + 32 * pair + 8 * odd;
        second_ = head_ + 8 + 32 * pair + 8 - 8 * odd;
        low_levels_ = kept(kLevels.words[0]);
        high_levels_ = kept(reversed(kLevels.words[3]));
        minus_one_ = kept(~0u);
        upper_half_ = kept(0x10000);
        six_bits_ = kept(0x3F);
        scale_shift_ = 0x100000u >> 4 * pair;
    }
    // Adds the products of rows g and g + 8 of the block that is `at` bytes from the k-tile's beginning, the lane's
    // share of them.
    SIMT_DEVICE void add(unsigned at, const MmaActivations& x, float (&sums)[2]) const {
        using namespace simt;
        int products[2][4] = {};  // of groups 2 t and 2 t + 1
        SIMT_UNROLL
        for (unsigned i = 0; i < 2; ++i) {
            uint32_t w[2][4];
            codes(at + 16 * i, w[0]);
            codes(at + 16 * i + 8 * kMmaRowBytes, w[1]);
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                uint32_t low[4], high[4];
                levels(w[0][j], low[0], low[2], high[0], high[2]);
                levels(w[1][j], low[1], low[3], high[1], high[3]);
                const uint32_t of_x[2] = {x.codes[2 * j], x.codes[2 * j + 1]};
                mma_s8(products[i], low, of_x);
                mma_s8(products[i], high, of_x);
            }
        }
        add_scaled(at, products[0][0], products[1][1], x.scales, sums[0]);
        add_scaled(at + 8 * kMmaRowBytes, products[0][2], products[1][3], x.scales, sums[1]);
    }

  private:
    // As a value that the compiler does not know: it would load a constant again for each use.
    SIMT_DEVICE static uint32_t kept(uint32_t value) { return value ^ simt::thread_index().y; }
    SIMT_DEVICE static constexpr uint32_t reversed(uint32_t w) {
        return w >> 24 | (w >> 8 & 0xFF00) | (w << 8 & 0xFF0000) | w << 24;
    }
    // The 16 bytes of a group. Lanes with an odd t begin with the second half: they would meet others in a bank.
    SIMT_DEVICE void codes(unsigned at, uint32_t (&w)[4]) const {
        const auto a = sub_block_bits::get<simt::UInt2>(first_ + at),
                   b = sub_block_bits::get<simt::UInt2>(second_ + at);
        w[0] = a.x, w[1] = a.y, w[2] = b.x, w[3] = b.y;
    }
    // What the nibbles of a word's halves choose from the lower and from the upper eight levels. Permutations alone
    // keep the unit of integers busy most of the time, so that the rest is made of multiplications, which are another
    // unit's: ~w has the upper bits of nibbles inverted, and chooses from levels in the reverse order.
    SIMT_DEVICE void levels(uint32_t w, uint32_t& low, uint32_t& low2, uint32_t& high, uint32_t& high2) const {
        using simt::byte_permute;
        const uint32_t upper = simt::multiply_high(w, upper_half_);
        low = byte_permute(low_levels_, kLevels.words[1], w);
        low2 = byte_permute(low_levels_, kLevels.words[1], upper);
        high = byte_permute(high_levels_, reversed(kLevels.words[2]), w * minus_one_ + minus_one_);
        high2 = byte_permute(high_levels_, reversed(kLevels.words[2]), upper * minus_one_ + minus_one_);
    }
    SIMT_DEVICE void add_scaled(unsigned at, int first, int second, const simt::Float2& scales, float& sum) const {
        using namespace simt;
        const auto head = sub_block_bits::get<uint32_t>(head_ + at);
        const uint32_t low = sub_block_bits::get<uint8_t>(low_scales_ + at);
        const uint32_t high = multiply_high(head, scale_shift_), high2 = multiply_high(head, 4 * scale_shift_);
        // Floats from 2^23 on count ones, those from 2^19 on sixteenths: so scales need no conversion.
        const uint32_t nibble = minus_one_ >> 28;
        const uint32_t a = (((low & nibble) | (high & ~nibble)) & six_bits_) ^ 0x4B000000u;
        const uint32_t b = (((low & nibble << 4) | (high2 & ~(nibble << 4))) & six_bits_ << 4) ^ 0x49000000u;
        float product = (bits_as<float>(a) - (8388608.f + 32)) * (static_cast<float>(first) * scales.x);
        product = fmaf(bits_as<float>(b) - (524288.f + 32), static_cast<float>(second) * scales.y, product);
        sum = fmaf(unpack_low<half_t>(head), product, sum);
    }

    const char *head_, *low_scales_, *first_, *second_;
    uint32_t low_levels_, high_levels_, minus_one_, upper_half_, six_bits_, scale_shift_;
};

// The products of rows, of each lane its share of those of rows g and g + 8. Of warps kMatmulWarps in number, each
// calls it with its memory, `shared`, of kMmaKTileBytes.
template <class Vector>
SIMT_DEVICE void multiply_rows(const MmaRows& rows, int k, const char* activations, char* shared, float (&sums)[2]) {
    using namespace simt;
    const int bytes = row_bytes_of<TSR_TYPE_IQ4_XS>(k);
    if (static_cast<int>(kMmaRowBytes * warp()) >= bytes) return;
    MmaStream<Vector> stream(rows, warp(), bytes, shared);
    const MmaLevels levels(shared);
    const unsigned group = lane() / 4, pair = lane() % 4;
    const bool has_codes = group / 2 == pair;
    // Its 32 bytes are at a multiple of 32, and lie as MmaLevels::codes() reads groups.
    const char* codes = activations + 512 * warp() + 32 * group + 16 * (pair % 2);
    const char* scales = activations + k + 64 * warp() + 8 * pair;  // int8_scales_begin(k), k a multiple of 256
    MmaActivations x[2];
    do {
        const bool two = sizeof(Vector) == 16 || stream.left() >= static_cast<int>(kMmaRowBytes);
        x[0].scales = load_global<Float2>(scales);
        if (two) x[1].scales = load_global<Float2>(scales + 32);
        if (has_codes) {
            const auto* second = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(codes) ^ 16);
            SIMT_UNROLL
            for (unsigned b = 0; b < 2; ++b) {
                if (b == 1 && !two) break;
                const auto u = load_global<UInt4>(codes + 256 * b), v = load_global<UInt4>(second + 256 * b);
                auto& to = x[b].codes;
                to[0] = u.x, to[1] = u.y, to[2] = u.z, to[3] = u.w;
                to[4] = v.x, to[5] = v.y, to[6] = v.z, to[7] = v.w;
            }
        }
        stream.store();
        sync_warp();
        stream.next(kMatmulWarps);
        levels.add(0, x[0], sums);
        if (two) levels.add(sizeof(formats::BlockIq4Xs), x[1], sums);
        sync_warp();  // the k-tile has been read
        codes += 512 * kMatmulWarps;
        scales += 64 * kMatmulWarps;
    } while (stream.left() > 0);
}

SIMT_DEVICE char* memory_of_warp(simt::UInt4* shared) {
    return reinterpret_cast<char*>(shared) + simt::warp() * kMmaKTileBytes;
}

// The sum of row i over lanes and warps, in thread i of the block, all of which call it. `shared`: the memory of all
// warps, which a warp's is part of.
SIMT_DEVICE float sum_of_row(const float (&sums)[2], simt::UInt4* shared) {
    using namespace simt;
    auto* mine = reinterpret_cast<float*>(memory_of_warp(shared)) + lane();
    mine[0] = sums[0];
    mine[32] = sums[1];
    sync_block();
    if (thread_index().x >= kMmaRows) return 0;
    float sum = 0;
    SIMT_UNROLL
    for (unsigned w = 0; w < kMatmulWarps; ++w) {
        const auto of_lanes = reinterpret_cast<const Float4*>(shared)[kMmaKTileBytes / 16 * w + thread_index().x];
        sum += of_lanes.x + of_lanes.y + (of_lanes.z + of_lanes.w);
    }
    return sum;
}

// Grid: x the outputs by 16, y the maximum of rows, z the batch.
template <class Vector>
SIMT_DEVICE void multiply_row_mma(const Matmul& a) {
    using namespace simt;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * kMmaKTileBytes / 16);
    const RowRange range = actual_rows(a.rows);
    const unsigned output = block_index().x * kMmaRows, row = block_index().y, batch = block_index().z;
    if (static_cast<int>(row) >= range.end - range.begin) return;
    const unsigned count = static_cast<unsigned>(a.n) - output;
    float sums[2] = {};
    multiply_rows<Vector>({at<char>(a.weight, output * a.weight_row + batch * a.weight_batch),
                           static_cast<uint32_t>(a.weight_row), count},
                          a.k,
                          at<char>(a.activations, (row * static_cast<unsigned>(a.batch) + batch) * a.activation_bytes),
                          memory_of_warp(k_tiles), sums);
    const float sum = sum_of_row(sums, k_tiles);
    const unsigned mine = thread_index().x;
    if (mine < kMmaRows && mine < count)
        at<float>(a.y, (static_cast<unsigned>(range.begin) + row) * a.y_row + batch * a.y_batch)[output + mine] = sum;
}

// Grid: x the outputs by 16, y the maximum of rows, z the slots.
template <class Vector>
SIMT_DEVICE void multiply_row_by_id_mma(const MatmulId& m) {
    using namespace simt;
    SIMT_SHARED(UInt4, k_tiles, kMatmulWarps * kMmaKTileBytes / 16);
    const Matmul& a = m.matmul;
    const RowRange range = actual_rows(a.rows);
    const unsigned output = block_index().x * kMmaRows, row = block_index().y, slot = block_index().z;
    if (static_cast<int>(row) >= range.end - range.begin) return;
    const unsigned count = static_cast<unsigned>(a.n) - output, of_all = static_cast<unsigned>(range.begin) + row;
    const int id = *at<int32_t>(m.ids, of_all * m.ids_row + slot * m.ids_slot);
    float sums[2] = {};
    if (id >= 0 && id < m.experts) {
        const unsigned stored = row * static_cast<unsigned>(a.batch) + slot % static_cast<unsigned>(a.batch);
        multiply_rows<Vector>({at<char>(a.weight, output * a.weight_row + static_cast<unsigned>(id) * a.weight_batch),
                               static_cast<uint32_t>(a.weight_row), count},
                              a.k, at<char>(a.activations, stored * a.activation_bytes), memory_of_warp(k_tiles), sums);
    } else if (id != -1) {
        sums[0] = sums[1] = bits_as<float>(0x7FFFFFFFu);
    }
    const float sum = sum_of_row(sums, k_tiles);
    const unsigned mine = thread_index().x;
    if (mine < kMmaRows && mine < count) at<float>(a.y, of_all * a.y_row + slot * a.y_batch)[output + mine] = sum;
}

}  // namespace tessera::cuda_kernels

#define TESSERA_ONE_ROW_MMA_AS(name, suffix, Vector)                 \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps, 4)         \
    matmul_##name##_tile1##suffix(tessera::cuda_kernels::Matmul a) { \
        tessera::cuda_kernels::multiply_row_mma<Vector>(a);          \
    }                                                                \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kMatmulWarps, 4)         \
    matmul_id_##name##suffix(tessera::cuda_kernels::MatmulId m) {    \
        tessera::cuda_kernels::multiply_row_by_id_mma<Vector>(m);    \
    }
#define TESSERA_ONE_ROW_MMA(name, id)                \
    TESSERA_ONE_ROW_MMA_AS(name, _by16, simt::UInt4) \
    TESSERA_ONE_ROW_MMA_AS(name, _by8, simt::UInt2)
#else
#define TESSERA_ONE_ROW_MMA(name, id) TESSERA_ONE_ROW_BY_8(name, id)
#endif
