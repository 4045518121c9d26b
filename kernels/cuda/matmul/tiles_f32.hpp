// Products of many rows in f32: of weights of f32, f16 and bf16 without tensor cores, and of all block formats on cards
// without dp4a. 64 rows of 64 outputs a block, 8 rows of 4 outputs a thread, steps of 32 elements.
#pragma once

#include "../formats/sub_block_bits.hpp"
#include "tile_rows.hpp"
#include "tiles_plain.hpp"

namespace tessera::cuda_kernels {

inline constexpr int kFloatStep = 32;
inline constexpr int kFloatStride = kFloatStep + 4;  // of a row in shared memory: nine times 16 bytes

template <int kType>
struct StoredOf {
    using Type = simt::half_t;
};
template <>
struct StoredOf<TSR_TYPE_BF16> {
    using Type = simt::bfloat16_t;
};
template <int kType>
using Stored = typename StoredOf<kType>::Type;

// 16 elements of a row as f32, from `first` on; past k they are zeros.
template <int kType>
struct FloatSubBlock {
    float values[16];

    SIMT_DEVICE void load(const char* row, int first, int k) {
        using namespace simt;
        if constexpr (kType == TSR_TYPE_F32 || kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16) {
            constexpr int kSize = kType == TSR_TYPE_F32 ? 4 : 2;
            const char* from = row + kSize * static_cast<int64_t>(first);
            if (row && first + 16 <= k && reinterpret_cast<uintptr_t>(from) % 16 == 0) {
                SIMT_UNROLL
                for (int i = 0; i < kSize; ++i) {
                    const UInt4 v = load_global<UInt4>(from + 16 * i);
                    const uint32_t words[4] = {v.x, v.y, v.z, v.w};
                    SIMT_UNROLL
                    for (int w = 0; w < 4; ++w) {
                        if constexpr (kType == TSR_TYPE_F32) {
                            values[4 * i + w] = bits_as<float>(words[w]);
                        } else {
                            using T = Stored<kType>;
                            values[8 * i + 2 * w] = unpack_low<T>(words[w]);
                            values[8 * i + 2 * w + 1] = unpack_high<T>(words[w]);
                        }
                    }
                }
                return;
            }
            SIMT_UNROLL
            for (int i = 0; i < 16; ++i) {
                values[i] = 0;
                if (!row || first + i >= k) continue;
                if constexpr (kType == TSR_TYPE_F32) {
                    values[i] = load_global<float>(from + 4 * i);
                } else {
                    values[i] = to_float(load_global<Stored<kType>>(from + 2 * i));
                }
            }
        } else if (row && first < k) {
            const SubBlock p = Format<kType>::load(row, first / kSubBlockElements);
            SIMT_UNROLL
            for (int i = 0; i < 16; ++i)
                values[i] =
                    fmaf(p.scale, static_cast<float>(static_cast<int8_t>(p.codes[i / 4] >> 8 * (i % 4))), p.offset);
        } else {
            SIMT_UNROLL
            for (int i = 0; i < 16; ++i) values[i] = 0;
        }
    }
    SIMT_DEVICE void store(float* to) const {
        SIMT_UNROLL
        for (int i = 0; i < 16; i += 4)
            *reinterpret_cast<simt::Float4*>(to + i) =
                simt::Float4{values[i], values[i + 1], values[i + 2], values[i + 3]};
    }
};

SIMT_DEVICE void multiply_floats(float (&sums)[8][4], const float* x, const float* weights) {
    using namespace simt;
    SIMT_UNROLL
    for (int q = 0; q < kFloatStep; q += 4) {
        Float4 w[4];
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j) w[j] = *reinterpret_cast<const Float4*>(weights + 16 * j * kFloatStride + q);
        SIMT_UNROLL
        for (int i = 0; i < 8; ++i) {
            const Float4 v = *reinterpret_cast<const Float4*>(x + i * kFloatStride + q);
            SIMT_UNROLL
            for (int j = 0; j < 4; ++j) {
                sums[i][j] = fmaf(w[j].x, v.x, sums[i][j]);
                sums[i][j] = fmaf(w[j].y, v.y, sums[i][j]);
                sums[i][j] = fmaf(w[j].z, v.z, sums[i][j]);
                sums[i][j] = fmaf(w[j].w, v.w, sums[i][j]);
            }
        }
    }
}

// Grid: x the tiles of rows, y the outputs by those of a tile (of pairs by half of them), z the batch. x is f32.
template <int kType>
SIMT_DEVICE void multiply_tile_f32(const Tiles& a) {
    using namespace simt;
    constexpr int kRows = kPlainTile, kOutputs = kPlainTileOutputs;
    SIMT_SHARED(Float4, shared, 2 * (kRows + kOutputs) * kFloatStride / 4);
    SIMT_SHARED(int64_t, targets, kRows);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    if (t < tile.count) targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);

    // Each thread brings 16 elements of a row of x and of one of the weight.
    const int mine = t / 2, part = t % 2 * 16;
    const char* x =
        mine < tile.count ? at<char>(a.x, row_offset(a, tile, mine, a.x_numbering, a.x_row, a.x_slot)) : nullptr;
    const char* weight = weight_of_column(a, tile.matrix, first_column, mine);
    auto* floats = reinterpret_cast<float*>(shared);
    const auto x_at = [&](int step, int row) { return floats + (step % 2 * (kRows + kOutputs) + row) * kFloatStride; };

    const int first_row = t / 16 * 8, my_column = t % 16;
    const bool busy = static_cast<int>(warp()) * 16 < tile.count;
    float sums[8][4];
    SIMT_UNROLL
    for (int i = 0; i < 32; ++i) sums[i / 4][i % 4] = 0;

    const int steps = (a.k + kFloatStep - 1) / kFloatStep;
    FloatSubBlock<TSR_TYPE_F32> x_ahead;
    FloatSubBlock<kType> weight_ahead;
    const auto load = [&](int step) {
        x_ahead.load(x, step * kFloatStep + part, a.k);
        weight_ahead.load(weight, step * kFloatStep + part, a.k);
    };
    const auto store = [&](int step) {
        x_ahead.store(x_at(step, mine) + part);
        weight_ahead.store(x_at(step, kRows + mine) + part);
    };
    load(0);
    store(0);
    for (int step = 0; step < steps; ++step) {
        sync_block();
        const bool more = step + 1 < steps;
        if (more) load(step + 1);
        if (busy) multiply_floats(sums, x_at(step, first_row), x_at(step, kRows + my_column));
        if (more) store(step + 1);
    }
    write_plain_tile(a, sums, targets, first_row, tile.count, first_column, my_column);
}

}  // namespace tessera::cuda_kernels
