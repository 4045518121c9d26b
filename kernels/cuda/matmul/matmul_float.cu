// Products of few rows with weights of f32, f16 and bf16: a warp an output, sums in f32.
#include "columns.hpp"
#include "../overlap.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

struct F32 {
    using Stored = float;
    SIMT_DEVICE static float value(float stored) { return stored; }
};
struct F16 {
    using Stored = half_t;
    SIMT_DEVICE static float value(half_t stored) { return to_float(stored); }
};
struct Bf16 {
    using Stored = bfloat16_t;
    SIMT_DEVICE static float value(bfloat16_t stored) { return to_float(stored); }
};

// The elements of a vector of 16 bytes as floats: 4 of f32, 8 of the others.
template <class Type>
struct Elements {
    static constexpr int kCount = 16 / static_cast<int>(sizeof(typename Type::Stored));
    float values[kCount];

    SIMT_DEVICE static Elements of(const UInt4& v) {
        const uint32_t words[4] = {v.x, v.y, v.z, v.w};
        Elements all;
        SIMT_UNROLL
        for (int i = 0; i < 4; ++i) {
            if constexpr (kCount == 4) {
                all.values[i] = bits_as<float>(words[i]);
            } else {
                all.values[2 * i] = unpack_low<typename Type::Stored>(words[i]);
                all.values[2 * i + 1] = unpack_high<typename Type::Stored>(words[i]);
            }
        }
        return all;
    }
};

template <class Type, int kTile>
SIMT_DEVICE void add_vectors(const Matmul& a, const char* weight, const float* const (&x)[kTile],
                             float (&sums)[kTile]) {
    constexpr int kAtOnce = 4, kCount = Elements<Type>::kCount;
    const int vectors = a.k / kCount;
    for (int begin = static_cast<int>(lane()); begin < vectors; begin += 32 * kAtOnce) {
        UInt4 w[kAtOnce];
        SIMT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
            const int vector = begin + 32 * i;
            w[i] = vector < vectors ? load_global<UInt4>(weight + 16 * static_cast<int64_t>(vector)) : UInt4{0, 0, 0, 0};
        }
        SIMT_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
            const int vector = begin + 32 * i;
            if (vector >= vectors) break;
            const Elements<Type> elements = Elements<Type>::of(w[i]);
            SIMT_UNROLL
            for (int t = 0; t < kTile; ++t) {
                SIMT_UNROLL
                for (int e = 0; e < kCount; e += 4) {
                    const Float4 v = load_global<Float4>(x[t] + kCount * vector + e);
                    sums[t] = fmaf(elements.values[e], v.x, sums[t]);
                    sums[t] = fmaf(elements.values[e + 1], v.y, sums[t]);
                    sums[t] = fmaf(elements.values[e + 2], v.z, sums[t]);
                    sums[t] = fmaf(elements.values[e + 3], v.w, sums[t]);
                }
            }
        }
    }
}

template <class Type, int kTile>
SIMT_DEVICE void add_elements(const Matmul& a, const char* weight, const float* const (&x)[kTile],
                              float (&sums)[kTile]) {
    using Stored = typename Type::Stored;
    for (int i = static_cast<int>(lane()); i < a.k; i += 32) {
        const float w = Type::value(load_global<Stored>(weight + static_cast<int64_t>(sizeof(Stored)) * i));
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) sums[t] = fmaf(w, load_global<float>(x[t] + i), sums[t]);
    }
}

// The dot products of a row of the weight with rows of x.
template <class Type, int kTile>
SIMT_DEVICE void add_row(const Matmul& a, const char* weight, const float* const (&x)[kTile], float (&sums)[kTile]) {
    if (a.vectors) {
        add_vectors<Type, kTile>(a, weight, x, sums);
    } else {
        add_elements<Type, kTile>(a, weight, x, sums);
    }
}

// Grid as that of multiply_few (few_rows.hpp).
template <class Type, int kTile>
SIMT_DEVICE void multiply(const Matmul& a) {
    const RowRange range = awaited_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int batch = static_cast<int>(block_index().z), rows = range.end - range.begin;
    const auto* weight = at<char>(a.weight, output * a.weight_row + batch * a.weight_batch);
    for (int first = static_cast<int>(block_index().y) * kTile; first < rows;
         first += static_cast<int>(grid_size().y) * kTile) {
        const float* x[kTile];
        float sums[kTile];
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            const int64_t row = range.begin + minimum(first + t, rows - 1);
            x[t] = at<float>(a.x, row * a.x_row + batch * a.x_batch);
            sums[t] = 0;
        }
        add_row<Type, kTile>(a, weight, x, sums);
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            const float sum = warp_sum(sums[t]);
            if (lane() == 0 && first + t < rows)
                *at<float>(a.y, (range.begin + first + t) * a.y_row + batch * a.y_batch + 4 * static_cast<int64_t>(output)) =
                    sum;
        }
    }
}

// Grid as that of multiply_by_id (few_rows.hpp).
template <class Type>
SIMT_DEVICE void multiply_by_id(const MatmulId& m) {
    const Matmul& a = m.matmul;
    const RowRange range = awaited_rows(a.rows);
    const int output = static_cast<int>(block_index().x) * kMatmulWarps + static_cast<int>(warp());
    if (output >= a.n) return;
    const int slot = static_cast<int>(block_index().z);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int id = *at<int32_t>(m.ids, row * m.ids_row + slot * m.ids_slot);
        float sums[1] = {0};
        if (id >= 0 && id < m.experts) {
            const float* const x[1] = {at<float>(a.x, row * a.x_row + slot % a.batch * a.x_batch)};
            add_row<Type, 1>(a, at<char>(a.weight, output * a.weight_row + id * a.weight_batch), x, sums);
        } else if (id != -1) {
            sums[0] = bits_as<float>(0x7FFFFFFFu);
        }
        const float sum = warp_sum(sums[0]);
        if (lane() == 0) *at<float>(a.y, row * a.y_row + slot * a.y_batch + 4 * static_cast<int64_t>(output)) = sum;
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

#define TESSERA_MATMUL(name, type, tile) \
    SIMT_KERNEL(32 * kMatmulWarps, (tile) == 8 ? 3 : 4) matmul_##name##_tile##tile(Matmul a) { multiply<type, tile>(a); }
#define TESSERA_MATMUL_TILES(name, type) \
    TESSERA_MATMUL(name, type, 1)        \
    TESSERA_MATMUL(name, type, 2)        \
    TESSERA_MATMUL(name, type, 4)        \
    SIMT_KERNEL(32 * kMatmulWarps, 4) matmul_id_##name(MatmulId m) { multiply_by_id<type>(m); }

TESSERA_MATMUL_TILES(f32, F32)
TESSERA_MATMUL_TILES(f16, F16)
TESSERA_MATMUL_TILES(bf16, Bf16)
TESSERA_MATMUL(f32, F32, 8)
#if SIMT_ARCH < 800  // else in tiles, which have tensor cores
TESSERA_MATMUL(f16, F16, 8)
TESSERA_MATMUL(bf16, Bf16, 8)
#endif

TESSERA_COLUMNS_OF(f32, F32)
TESSERA_COLUMNS_OF(f16, F16)
TESSERA_COLUMNS_OF(bf16, BF16)
