// cache_write_floats: a thread some elements; cache_write: a block of 32 elements; cache_write_rows: a warp a row, of
// types whose rows have a scale.
#include "cache_rows.hpp"
#include "../overlap.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

// What of a row's elements is this thread's, with neighbours in the threads beside it.
template <class T, class Convert>
SIMT_DEVICE void write_as(const float (&values)[kFloatsOfThread], int first, int n, char* row, Convert&& convert) {
    SIMT_UNROLL
    for (int i = 0; i < kFloatsOfThread; ++i) {
        const int element = first + i * kCacheWriteThreads;
        if (element < n) reinterpret_cast<T*>(row)[element] = convert(values[i]);
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;
using namespace simt;

// Of f32, f16 and bf16. Grid: x the elements of a row by kCacheWriteThreads * kFloatsOfThread, y the maximum of rows or
// fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write_floats(CacheWrite p) {
    const RowRange range = awaited_rows(p.rows);
    const int first = static_cast<int>(block_index().x * kCacheWriteThreads * kFloatsOfThread + thread_index().x);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        // All of it is read before it is known where it goes.
        const float* from = at<float>(p.x, row * p.x_row);
        float values[kFloatsOfThread];
        SIMT_UNROLL
        for (int i = 0; i < kFloatsOfThread; ++i) {
            const int element = first + i * kCacheWriteThreads;
            values[i] = element < p.n ? from[element] : 0.f;
        }
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int page = page_of(p.pages, position, *at<int32_t>(p.sequences, row * p.sequence));
        if (page < 0) continue;
        auto* to = at<char>(p.cache, page * p.page + position % kPageTokens * p.token);
        if (p.type == TSR_TYPE_F32) {
            write_as<float>(values, first, p.n, to, [](float v) { return v; });
        } else if (p.type == TSR_TYPE_F16) {
            write_as<uint16_t>(values, first, p.n, to, [](float v) { return tessera::formats::f32_to_f16(v); });
        } else {
            write_as<uint16_t>(values, first, p.n, to, [](float v) { return tessera::formats::f32_to_bf16(v); });
        }
    }
}

// Grid: x the blocks of a row by kCacheWriteThreads, y the maximum of rows or fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write(CacheWrite p) {
    const RowRange range = awaited_rows(p.rows);
    const int block = static_cast<int>(block_index().x * kCacheWriteThreads + thread_index().x);
    if (block * kCacheBlock >= p.n) return;
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const float* from = at<float>(p.x, row * p.x_row) + block * kCacheBlock;
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int page = page_of(p.pages, position, *at<int32_t>(p.sequences, row * p.sequence));
        if (page < 0) continue;
        encode_cached_block(p.type, from, at<char>(p.cache, page * p.page + position % kPageTokens * p.token), block);
    }
}

// Grid: x the maximum of rows by the warps of a block, or fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write_rows(CacheWrite p) {
    using Block = tessera::formats::BlockQ8KV;
    constexpr int kWarps = kCacheWriteThreads / 32;
    const RowRange range = awaited_rows(p.rows);
    for (int row = range.begin + static_cast<int>(block_index().x * kWarps + warp()); row < range.end;
         row += static_cast<int>(grid_size().x) * kWarps) {
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int page = page_of(p.pages, position, *at<int32_t>(p.sequences, row * p.sequence));
        if (page < 0) continue;
        const float* from = at<float>(p.x, row * p.x_row);
        float largest = 0, not_finite = 0;
        for (int i = static_cast<int>(lane()); i < p.n; i += 32) {
            largest = maximum(largest, fabsf(from[i]));
            not_finite += from[i] * 0.f;
        }
        auto head = Block::RowHead::of(reduce_maximum(largest) + reduce_sum(not_finite));
        auto* to = at<char>(p.cache, page * p.page + position % kPageTokens * p.token);
        auto* blocks = reinterpret_cast<Block*>(to + Block::kRowHead);
        for (int block = static_cast<int>(lane()); block < p.n / kCacheBlock; block += 32)
            tessera::formats::encode(from + block * kCacheBlock, head, blocks[block]);
        // Exact in f32: below 2^24 for rows of 2^17 elements.
        const auto sum = static_cast<int32_t>(reduce_sum(static_cast<float>(head.sum)));
        if (lane() == 0) *reinterpret_cast<Block::RowHead*>(to) = {head.d, sum};
    }
}
