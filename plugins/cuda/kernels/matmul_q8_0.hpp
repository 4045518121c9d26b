// Products of few rows with a weight of q8_0.
//
// A block of q8_0 has 34 bytes, so neither blocks nor codes are aligned to anything but 2. A row is read all the same
// as what it is, a stream of bytes, in vectors of 16 that the lanes of a warp share out; activations lie as the weight
// does (arguments.hpp). Since 34 leaves 2 when divided by 4, each word of 4 bytes belongs to one block: where a scale
// is within a word, the activations beside it are zeros, and the word's dot product is that of the codes. A vector
// holds parts of two blocks at most.
#pragma once

#include "rows.hpp"

namespace tessera::cuda_kernels {

// 16 bytes at `from`, of which `left` bytes belong to the row; the others are zeros. `from` is a multiple of kWidth,
// and so is `left`.
template <int kWidth>
SIMT_DEVICE simt::UInt4 load_vector(const char* from, int left) {
    using namespace simt;
    if constexpr (kWidth == 16) {
        return left > 0 ? load_global<UInt4>(from) : UInt4{0, 0, 0, 0};
    } else {
        uint32_t words[4] = {0, 0, 0, 0};
        SIMT_UNROLL
        for (int i = 0; i < 16; i += kWidth) {
            if (i >= left) continue;
            if constexpr (kWidth == 8) {
                const UInt2 two = load_global<UInt2>(from + i);
                words[i / 4] = two.x;
                words[i / 4 + 1] = two.y;
            } else if constexpr (kWidth == 4) {
                words[i / 4] = load_global<uint32_t>(from + i);
            } else {
                words[i / 4] |= static_cast<uint32_t>(load_global<uint16_t>(from + i)) << 8 * (i % 4);
            }
        }
        return UInt4{words[0], words[1], words[2], words[3]};
    }
}

// Activations as int8 with a scale a block.
struct Int8Row {
    const char* codes;
    const float* scales;

    SIMT_DEVICE static Int8Row of(const char* row, int blocks) {
        return {row, at<float>(row, int8_codes_bytes(blocks))};
    }
    // Adds the product with a vector of the weight, whose first `own` words belong to block b0 and the others to b1;
    // the scales are the weight's.
    SIMT_DEVICE void add(float& sum, const simt::UInt4& w, int vector, int own, int b0, int b1, float d0,
                         float d1) const {
        using namespace simt;
        const UInt4 x = load_global<UInt4>(codes + 16 * vector);
        const int p0 = word(w.x, x.x), p1 = word(w.y, x.y), p2 = word(w.z, x.z), p3 = word(w.w, x.w);
        const int first = p0 + (own > 1 ? p1 : 0) + (own > 2 ? p2 : 0) + (own > 3 ? p3 : 0);
        const int second = p0 + p1 + p2 + p3 - first;
        sum = fmaf(d0 * load_global<float>(scales + b0), static_cast<float>(first), sum);
        sum = fmaf(d1 * load_global<float>(scales + b1), static_cast<float>(second), sum);
    }

  private:
    SIMT_DEVICE static int word(uint32_t w, uint32_t x) {
        if constexpr (SIMT_ARCH >= 610) return simt::dp4a(static_cast<int>(w), static_cast<int>(x), 0);
        return 0;
    }
};

// Activations as they are: for cards without dp4a, on which f32 is as fast as anything.
struct FloatRow {
    const char* values;

    SIMT_DEVICE static FloatRow of(const char* row, int) { return {row}; }
    SIMT_DEVICE void add(float& sum, const simt::UInt4& w, int vector, int own, int, int, float d0, float d1) const {
        const char* x = values + 64 * static_cast<int64_t>(vector);
        const float p0 = word(w.x, x), p1 = word(w.y, x + 16), p2 = word(w.z, x + 32), p3 = word(w.w, x + 48);
        const float first = p0 + (own > 1 ? p1 : 0.f) + (own > 2 ? p2 : 0.f) + (own > 3 ? p3 : 0.f);
        const float second = (own > 1 ? 0.f : p1) + (own > 2 ? 0.f : p2) + (own > 3 ? 0.f : p3);
        sum = simt::fmaf(d0, first, sum);
        sum = simt::fmaf(d1, second, sum);
    }

  private:
    // A float between 2^23 and 2^24 counts ones: its low byte can be put there, biased by 128 to be unsigned.
    SIMT_DEVICE static float code(uint32_t biased, uint32_t selector) {
        return simt::bits_as<float>(simt::byte_permute(biased, 0x4B000000u, selector)) - 8388736.f;
    }
    SIMT_DEVICE static float word(uint32_t w, const char* from) {
        const simt::Float4 x = simt::load_global<simt::Float4>(from);
        const uint32_t biased = w ^ 0x80808080u;
        float sum = code(biased, 0x7440) * x.x;
        sum = simt::fmaf(code(biased, 0x7441), x.y, sum);
        sum = simt::fmaf(code(biased, 0x7442), x.z, sum);
        return simt::fmaf(code(biased, 0x7443), x.w, sum);
    }
};

// Adds the dot products of a row of the weight with rows of activations, each lane its share of them.
template <int kWidth, class Row, int kTile>
SIMT_DEVICE void add_products(const char* weight, int blocks, const Row (&x)[kTile], float (&sums)[kTile]) {
    using namespace simt;
    constexpr int kAtOnce = 4;  // vectors of a lane in flight
    const int bytes = blocks * kQ8Bytes, vectors = (bytes + 15) / 16;
    for (int begin = static_cast<int>(lane()); begin < vectors; begin += 32 * kAtOnce) {
        UInt4 w[kAtOnce];
        half_t scales[kAtOnce][2];
        SIMT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
            const int vector = begin + 32 * i;
            w[i] = load_vector<kWidth>(weight + 16 * static_cast<int64_t>(vector), bytes - 16 * vector);
            const int b0 = minimum(16 * vector / kQ8Bytes, blocks - 1);
            const int b1 = minimum((16 * vector + 12) / kQ8Bytes, blocks - 1);
            scales[i][0] = load_global<half_t>(weight + b0 * kQ8Bytes);
            scales[i][1] = load_global<half_t>(weight + b1 * kQ8Bytes);
        }
        SIMT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
            const int vector = begin + 32 * i;
            if (vector >= vectors) break;
            const int b0 = 16 * vector / kQ8Bytes;
            const int b1 = minimum((16 * vector + 12) / kQ8Bytes, blocks - 1);
            const int own = (kQ8Bytes * (b0 + 1) - 16 * vector + 3) / 4;  // words that begin in b0, 4 or more: all
            const float d0 = to_float(scales[i][0]), d1 = to_float(scales[i][1]);
            SIMT_UNROLL
            for (int t = 0; t < kTile; ++t) x[t].add(sums[t], w[i], vector, own, b0, b1, d0, d1);
        }
    }
}

// Grid: x the outputs by kMatmulWarps, y the maximum of rows by kTile or fewer, z the batch.
template <class Row, int kWidth, int kTile>
SIMT_DEVICE void multiply_q8_0(const Matmul& a) {
    using namespace simt;
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int batch = static_cast<int>(block_index().z), rows = range.end - range.begin;
    const int blocks = a.k / kQ8Elements;
    const auto* weight = at<char>(a.weight, output * a.weight_row + batch * a.weight_batch);
    for (int first = static_cast<int>(block_index().y) * kTile; first < rows;
         first += static_cast<int>(grid_size().y) * kTile) {
        Row x[kTile];
        float sums[kTile];
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            // Rows past the last are the last one again, and not written.
            const int64_t row = minimum(first + t, rows - 1);
            x[t] = Row::of(at<char>(a.activations, (row * a.batch + batch) * a.activation_bytes), blocks);
            sums[t] = 0;
        }
        add_products<kWidth>(weight, blocks, x, sums);
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
template <class Row, int kWidth>
SIMT_DEVICE void multiply_by_id_q8_0(const MatmulId& m) {
    using namespace simt;
    const Matmul& a = m.matmul;
    const RowRange range = actual_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int slot = static_cast<int>(block_index().z), blocks = a.k / kQ8Elements;
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int id = *at<int32_t>(m.ids, row * m.ids_row + slot * m.ids_slot);
        float sums[1] = {0};
        if (id >= 0 && id < m.experts) {
            const int64_t stored = static_cast<int64_t>(row - range.begin) * a.batch + slot % a.batch;
            const Row x[1] = {Row::of(at<char>(a.activations, stored * a.activation_bytes), blocks)};
            add_products<kWidth>(at<char>(a.weight, output * a.weight_row + id * a.weight_batch), blocks, x, sums);
        } else if (id != -1) {
            sums[0] = bits_as<float>(0x7FFFFFFFu);
        }
        const float sum = warp_sum(sums[0]);
        if (lane() == 0) *at<float>(a.y, row * a.y_row + slot * a.y_batch + 4 * static_cast<int64_t>(output)) = sum;
    }
}

}  // namespace tessera::cuda_kernels
