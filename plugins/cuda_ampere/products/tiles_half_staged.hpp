// The same products as tiles_half.hpp where a multiprocessor has shared memory for more of what is on its way: rows of
// the weight come by asynchronous copies, too, three steps ahead, if they begin at multiples of 16 bytes.
#pragma once

#include "write_tile.hpp"

namespace tessera::cuda_kernels {

// Grid: x the tiles of rows, y the outputs by 128 (of pairs by 64), z the batch. Dynamic shared memory:
// staged_half_bytes().
template <bool kBrain, int kWarpsOfRows>
SIMT_DEVICE void multiply_tile_half_staged(const Tiles& a, unsigned char* memory) {
    using namespace simt;
    constexpr int kWarps = 4 * kWarpsOfRows, kThreads = 32 * kWarps, kRows = 64 * kWarpsOfRows;
    constexpr int kOutputs = kStagedOutputs, kParts = half_parts(kBrain);
    constexpr int kColumns = kOutputs / (kWarps / kWarpsOfRows) / 8, kStages = kStagesOfRows;
    // Of 16 bytes of a row in shared memory: 32 elements, and 16 bytes so that the number is odd.
    constexpr int kVectors = 5, kStage = (kParts * kRows + kOutputs) * kVectors;
    constexpr int kCopies = kRows * 4 * kParts / kThreads, kWeightCopies = kOutputs * 4 / kThreads;
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(float, scales, kRows);
    auto* const shared = reinterpret_cast<UInt4*>(memory);

    const Tile tile = tile_of_block<kRows>(a);
    if (tile.count == 0) return;
    if (a.tiles && tile.matrix >= a.experts) return write_constants<kOutputs>(a, tile);
    const int t = static_cast<int>(thread_index().x), first_column = static_cast<int>(block_index().y) * kOutputs;
    const int steps = (a.k + kHalvesElements - 1) / kHalvesElements;
    if (t < tile.count) {
        targets[t] = row_offset(a, tile, t, a.y_numbering, a.y_row, a.y_slot);
        scales[t] =
            *at<float>(a.x, row_offset(a, tile, t, a.x_numbering, a.x_row, a.x_slot) + steps * kParts * int64_t{64});
    }
    uint32_t from[kCopies];  // in 16 bytes; rows past the last are zeros
    SIMT_UNROLL
    for (int i = 0; i < kCopies; ++i) {
        const int vector = t + i * kThreads, row = minimum(vector / (4 * kParts), tile.count - 1);
        from[i] = static_cast<uint32_t>(row_offset(a, tile, row, a.x_numbering, a.x_row, a.x_slot) / 16) +
                  static_cast<uint32_t>(vector % (4 * kParts));
    }
    const char* weights[kWeightCopies];
    SIMT_UNROLL
    for (int i = 0; i < kWeightCopies; ++i)
        weights[i] = nearest_weight_of_column(a, tile.matrix, first_column, t / 4 + i * (kThreads / 4)) + t % 4 * 16;
    const bool aligned =
        ((reinterpret_cast<uintptr_t>(a.weights[0]) | static_cast<uintptr_t>(a.weight_row) |
          static_cast<uintptr_t>(a.weight_matrix) | (a.paired ? reinterpret_cast<uintptr_t>(a.weights[1]) : 0)) %
         16) == 0;
    const auto copy = [&](int step, int stage) {
        if (step < steps) {
            const char* x = at<char>(a.x, step * int64_t{64} * kParts);
            SIMT_UNROLL
            for (int i = 0; i < kCopies; ++i) {
                const int vector = t + i * kThreads, row = vector / (4 * kParts), part = vector / 4 % kParts;
                copy_async16(shared + stage * kStage + (part * kRows + row) * kVectors + vector % 4,
                             x + static_cast<uint64_t>(from[i]) * 16, row < tile.count ? 16 : 0);
            }
            // Zeros past the end.
            const int left = 2 * (a.k - step * kHalvesElements) - t % 4 * 16;
            SIMT_UNROLL
            for (int i = 0; i < kWeightCopies; ++i) {
                UInt4* to = shared + stage * kStage + (kParts * kRows + t / 4 + i * (kThreads / 4)) * kVectors + t % 4;
                const char* weight = weights[i] + (left > 0 ? step * int64_t{64} : 0);
                if (aligned) {
                    copy_async16(to, weight, left >= 16 ? 16 : maximum(left, 0));
                } else {
                    uint32_t words[4] = {};
                    SIMT_UNROLL
                    for (int e = 0; e < 8; ++e)
                        if (2 * e < left)
                            words[e / 2] |= static_cast<uint32_t>(load_global<uint16_t>(weight + 2 * e))
                                            << 16 * (e % 2);
                    *to = UInt4{words[0], words[1], words[2], words[3]};
                }
            }
        }
        copy_async_commit();
    };

    const int l = static_cast<int>(lane()), row_warp = static_cast<int>(warp()) % kWarpsOfRows * 64,
              column_warp = static_cast<int>(warp()) / kWarpsOfRows * 8 * kColumns;
    const UInt4* const x_place = shared + (row_warp + l % 16) * kVectors + l / 16;
    const UInt4* const weight_place =
        shared + (kParts * kRows + column_warp + l % 8 + l / 16 * 8) * kVectors + l / 8 % 2;
    const int count = tile.count - row_warp;
    float sums[4][kColumns][4];
    SIMT_UNROLL
    for (int i = 0; i < 16 * kColumns; ++i) sums[i / (4 * kColumns)][i / 4 % kColumns][i % 4] = 0;

    SIMT_UNROLL
    for (int i = 0; i < kStages - 1; ++i) copy(i, i);
    for (int step = 0; step < steps; ++step) {
        copy_async_wait<kStages - 2>();
        sync_block();
        copy(step + kStages - 1, (step + kStages - 1) % kStages);
        const UInt4* x = x_place + step % kStages * kStage;
        const UInt4* w = weight_place + step % kStages * kStage;
        SIMT_UNROLL
        for (int half = 0; half < 2; ++half) {
            uint32_t b[kColumns][2];
            SIMT_UNROLL
            for (int j = 0; j < kColumns; j += 2) {
                uint32_t r[4];
                ldmatrix_x4(r, w + 8 * j * kVectors + 2 * half);
                b[j][0] = r[0], b[j][1] = r[1], b[j + 1][0] = r[2], b[j + 1][1] = r[3];
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                if (16 * i >= count) break;
                SIMT_UNROLL
                for (int part = 0; part < kParts; ++part) {
                    uint32_t r[4];
                    ldmatrix_x4(r, x + (part * kRows + 16 * i) * kVectors + 2 * half);
                    SIMT_UNROLL
                    for (int j = 0; j < kColumns; ++j) {
                        if constexpr (kBrain) {
                            mma_bf16(sums[i][j], r, b[j]);
                        } else {
                            mma_f16(sums[i][j], r, b[j]);
                        }
                    }
                }
            }
        }
    }
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int row = row_warp + 16 * i + e / 2 * 8 + l / 4;
            const float scale = row < tile.count ? scales[row] : 0.f;
            SIMT_UNROLL
            for (int j = 0; j < kColumns; ++j) sums[i][j][e] *= scale;
        }
    }
    write_mma_tile(a, sums, targets + row_warp, count, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
