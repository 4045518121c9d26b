// The same products as tiles_blocks.hpp where a multiprocessor has shared memory for more of what is on its way: blocks
// of the weight come as they lie in memory, by asynchronous copies of 16 bytes that neighbouring threads make of
// neighbouring bytes, and are decoded from shared memory one segment ahead of the products; segments of activations
// come three segments ahead.
#pragma once

#include "tiles_blocks.hpp"

namespace tessera::cuda_kernels {

// Threads that decode a row of a weight where there are two for each.
constexpr int staged_parts(int type) {
    switch (type) {
        case TSR_TYPE_Q2_K:
        case TSR_TYPE_Q3_K:
        case TSR_TYPE_Q4_0:
        case TSR_TYPE_Q4_K:
        case TSR_TYPE_Q5_0:
        case TSR_TYPE_Q5_K:
        case TSR_TYPE_Q6_0:
        case TSR_TYPE_Q8_0:
        case TSR_TYPE_Q8_K_F16:
        case TSR_TYPE_Q8_ROW:
        case TSR_TYPE_IQ1_M:
        case TSR_TYPE_IQ4_XS:
            return 2;
        default:
            return has_split_products(static_cast<tsr_type>(type)) ? 2 : 1;
    }
}

// Whether what a thread of two decodes of a segment stays in registers while products go on; of others it takes too
// many, and they store it before.
constexpr bool stays_in_registers(int type) {
    switch (type) {
        case TSR_TYPE_Q2_K:
        case TSR_TYPE_Q4_0:
        case TSR_TYPE_Q4_K:
        case TSR_TYPE_Q5_0:
        case TSR_TYPE_Q6_0:
        case TSR_TYPE_Q8_0:
        case TSR_TYPE_Q8_ROW:
        case TSR_TYPE_IQ4_XS:
            return true;
        default:
            return false;
    }
}

// Grid: x the tiles of rows, y the outputs by 128 (of pairs by 64), z the batch. Dynamic shared memory: staged_bytes().
// A block computes 64 rows with four warps, or 128 rows with eight.
template <int kType, int kWarpsOfRows, bool kSplit = false>
SIMT_DEVICE void multiply_tile_staged(const Tiles& a, unsigned char* memory) {
    using namespace simt;
    constexpr int kWarps = 4 * kWarpsOfRows;
    using Product =
        BlockTile<kType, kWarpsOfRows, kSplit, kWarps, kStagedOutputs, kWarpsOfRows == 1 ? 1 : staged_parts(kType)>;
    using Weights = typename Product::Weights;
    using F = typename Weights::F;
    constexpr auto kStage = weight_stage(static_cast<tsr_type>(kType));
    constexpr int kBytesOfBlock = kStage.bytes, kStride = kStage.stride;
    constexpr int kRows = Product::kRows, kOutputs = Product::kOutputs, kVectors = Product::kVectors;
    constexpr int kThreads = Product::kThreads, kStages = kStagesOfRows;
    static_assert(kStages == kBlockSegments);
    SIMT_SHARED(typename Product::Shared, weight_shared, 1);
    SIMT_SHARED(int64_t, targets, kRows);
    SIMT_SHARED(const char*, weight_rows, kOutputs);
    SIMT_SHARED(float, row_scales, kRows);
    SIMT_SHARED(int, begin, 4);
    SIMT_SHARED(int, count_of_rows, 1);         // read again at the end, since registers are scarce until then
    SIMT_SHARED(int, x_from, kRows* kVectors);  // in 16 bytes from a.x on; -1: zeros
    auto* const x_shared = reinterpret_cast<UInt4*>(memory);
    auto* const raw = reinterpret_cast<char*>(memory) + kStages * kRows * kSegmentBytes;  // two blocks of each row

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
    // Columns past the last output are computed like it, and not written.
    if (t < kOutputs) weight_rows[t] = nearest_weight_of_column(a, tile.matrix, first_column, t) + F::kPrefixBytes;
    if (t < 4) begin[t] = kMagicBits;
    if (t == 0) count_of_rows[0] = tile.count;

    // Neighbouring threads copy neighbouring bytes of a row. Rows past the last are zeros: of copies of it all blocks
    // would ask the second-level cache for the same bytes.
    for (int vector = t; vector < kRows * kVectors; vector += kThreads) {
        const int row = vector / kVectors;
        x_from[vector] =
            row < tile.count
                ? static_cast<int>(row_offset(a, tile, row, a.x_numbering, a.x_row, a.x_slot) / 16) + vector % kVectors
                : -1;
    }
    const auto copy_x = [&](int block, int segment, int stage) {
        constexpr int kOfBlock = kBlockSegments * kVectors;
        SIMT_UNROLL
        for (int i = 0; i < Product::kCopies; ++i) {
            const int vector = t + i * kThreads;
            if ((i + 1) * kThreads > kRows * kVectors && vector >= kRows * kVectors) continue;
            const int from = x_from[vector];
            copy_async16(
                x_shared + stage * kRows * kVectors + vector,
                at<char>(a.x, 16 * static_cast<int64_t>(maximum(from, 0) + block * kOfBlock) + segment * kSegmentBytes),
                from < 0 ? 0 : 16);
        }
    };
    sync_block();
    // Blocks begin anywhere in 16 bytes; four threads have a row, and some rows each. Past the end of a row are zeros.
    constexpr int kPasses = 4 * kOutputs / kThreads;
    char* const raw_to = raw + t / 4 * kStride + t % 4 * 16;
    const int row_bytes = a.k / F::kBlockElements * F::kBlockBytes;
    const auto copy_weights = [&](int block, int pass) {
        const char* from = weight_rows[t / 4 + pass * (kThreads / 4)] + static_cast<int64_t>(block) * kBytesOfBlock;
        const int left = row_bytes - block * kBytesOfBlock;  // of the row
        char* to = raw_to + (block % 2 * kOutputs + pass * (kThreads / 4)) * kStride;
        const auto past = F::kAlignment >= 16 ? 0 : static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16);
        const char* aligned = from - past + t % 4 * 16;
        const int end = past + minimum(left, kBytesOfBlock) - t % 4 * 16;
        if (F::kBlockElements == kBlockElements || left >= kBytesOfBlock) {
            SIMT_UNROLL
            for (int i = 0; i < (kStage.vectors + 3) / 4; ++i) {
                if (16 * (4 * i + 4) <= kBytesOfBlock) {
                    copy_async16(to + 64 * i, aligned + 64 * i);
                } else if (end > 64 * i) {
                    copy_async16(to + 64 * i, aligned + 64 * i, minimum(16, end - 64 * i));
                }
            }
        } else {
            SIMT_KEEP_LOOP
            for (int i = 0; t % 4 + 4 * i < kStage.vectors; ++i)
                copy_async16(to + 64 * i, end > 64 * i ? aligned + 64 * i : from,
                             maximum(minimum(16, end - 64 * i), 0));
        }
    };

    const int row_warp = static_cast<int>(warp()) % kWarpsOfRows * 64,
              column_warp = static_cast<int>(warp()) / kWarpsOfRows * 8 * Product::kColumns;
    Product product;
    product.filled = vote_ballot(16 * static_cast<int>(lane()) < tile.count - row_warp);
    product.place(x_shared, weight_shared[0], row_warp, column_warp);
    SIMT_UNROLL
    for (int i = 0; i < 16 * Product::kColumns; ++i)
        product.sums[i / (4 * Product::kColumns)][i / 4 % Product::kColumns][i % 4] = 0;
    weight_shared[0].begin();
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) product.begin[i] = begin[i];  // loaded, so that the compiler keeps them in registers

    // Where one thread decodes a row, each half of the threads has every second block.
    constexpr int kTurns = kThreads / kOutputs / Product::kParts;
    const int column = t / Product::kParts % kOutputs, part = t % Product::kParts;
    const float row_scale = F::row_scale(weight_rows[column] - F::kPrefixBytes);
    const auto weight = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(weight_rows[column]));
    Weights ahead;
    if constexpr (requires { ahead.begin(); }) ahead.begin();
    const auto mine = [&](int block) { return kTurns == 1 || block % kTurns == t / (kThreads / kTurns); };
    const auto load = [&](int block, int s) {
        const uint32_t past = F::kAlignment >= 16 ? 0 : (weight + static_cast<uint32_t>(block * kBytesOfBlock)) % 16;
        const char* of = raw + (block % 2 * kOutputs + column) * kStride + past;
        // What segments before it leave to this one is read anew, rather than kept in registers.
        SIMT_UNROLL
        for (int i = 0; i <= s; ++i) ahead.load(of, row_scale, i, part);
    };

    SIMT_UNROLL
    for (int pass = 0; pass < kPasses; ++pass) copy_weights(0, pass);
    SIMT_UNROLL
    for (int i = 0; i < kStages - 1; ++i) {
        copy_x(0, i, i);
        copy_async_commit();
    }
    copy_async_wait<kStages - 2>();
    sync_block();
    if (mine(0)) {
        load(0, 0);
        ahead.store(weight_shared[0], 0, column, part);
    }
    for (int block = 0; block < blocks; ++block) {
        const bool last = block + 1 == blocks;
        SIMT_UNROLL
        for (int s = 0; s < kBlockSegments; ++s) {
            constexpr int kAhead = kStages - 1;
            const int next = (s + 1) % kBlockSegments, next_block = s + 1 == kBlockSegments ? block + 1 : block;
            copy_async_wait<kStages - 3>();
            sync_block();
            const bool decodes = mine(next_block) && (s + 1 < kBlockSegments || !last);
            constexpr bool kKept = Product::kParts == 2 && stays_in_registers(kType);
            if (decodes) load(next_block, next);
            if (!kKept && decodes) ahead.store(weight_shared[0], next, column, part);
            if (s < 2 && !last) {
                SIMT_UNROLL
                for (int pass = s * kPasses / 2; pass < (s + 1) * kPasses / 2; ++pass) copy_weights(block + 1, pass);
            }
            if (s + kAhead < kBlockSegments || !last) copy_x(block, s + kAhead, (s + kAhead) % kStages);
            copy_async_commit();
            if (s == 0) product.begin_block(s);
            // Split products have no registers to spare.
            if constexpr (kSplit) {
                product.multiply_split(s, s % 2);
            } else if (product.filled > 3) {
                product.template multiply<4>(s, s % 2);
            } else {
                product.template multiply<2>(s, s % 2);
            }
            if (Weights::kMinimums == 16 && (s == 1 || s == 2)) product.add_minimums(s, s - 1);
            if (Weights::kMinimums == 8 && s == 3) product.add_minimums(s, 0);
            if (kKept && decodes) ahead.store(weight_shared[0], next, column, part);
        }
    }
    const int count = count_of_rows[0];
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int row = row_warp + 16 * i + e / 2 * 8 + static_cast<int>(lane()) / 4;
            const float scale = row < count ? row_scales[row] : 0.f;
            SIMT_UNROLL
            for (int j = 0; j < Product::kColumns; ++j)
                product.sums[i][j][e] = product.sums[i][j][e] * scale * (1.f / block_weights::kScaleUnit<kType>);
        }
    }
    write_mma_tile(a, product.sums, targets + row_warp, count - row_warp, first_column, column_warp);
}

}  // namespace tessera::cuda_kernels
