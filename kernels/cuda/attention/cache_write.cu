// cache_write: a thread a block of 32 elements; cache_write_rows: a warp a row, of types whose rows have a scale.
#include "cache_rows.hpp"
#include "../overlap.hpp"

namespace tessera::cuda_kernels {
namespace {

// 32 elements of a plain type in registers: all of it is read before it is known where it goes.
SIMT_DEVICE void read_block(const float* from, int count, float (&values)[kCacheBlock]) {
    SIMT_UNROLL
    for (int i = 0; i < kCacheBlock; ++i) values[i] = i < count ? from[i] : 0.f;
}
template <class T, class Convert>
SIMT_DEVICE void write_as(const float (&values)[kCacheBlock], int count, char* row, int block, Convert&& convert) {
    T* const to = reinterpret_cast<T*>(row) + block * kCacheBlock;
    SIMT_UNROLL
    for (int i = 0; i < kCacheBlock; ++i) {
        if (i < count) to[i] = convert(values[i]);
    }
}
SIMT_DEVICE void write_block(int type, const float (&values)[kCacheBlock], int count, char* row, int block) {
    if (type == TSR_TYPE_F32) {
        write_as<float>(values, count, row, block, [](float v) { return v; });
    } else if (type == TSR_TYPE_F16) {
        write_as<uint16_t>(values, count, row, block, [](float v) { return formats::f32_to_f16(v); });
    } else {
        write_as<uint16_t>(values, count, row, block, [](float v) { return formats::f32_to_bf16(v); });
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the blocks of a row by kCacheWriteThreads, y the maximum of rows or fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write(CacheWrite p) {
    using namespace simt;
    const RowRange range = awaited_rows(p.rows);
    const int block = static_cast<int>(block_index().x * kCacheWriteThreads + thread_index().x);
    if (block * kCacheBlock >= p.n) return;
    const bool is_plain = p.type == TSR_TYPE_F32 || p.type == TSR_TYPE_F16 || p.type == TSR_TYPE_BF16;
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const float* from = at<float>(p.x, row * p.x_row) + block * kCacheBlock;
        const int count = minimum(kCacheBlock, p.n - block * kCacheBlock);
        float values[kCacheBlock] = {};
        if (is_plain) read_block(from, count, values);
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int page = page_of(p.pages, position, *at<int32_t>(p.sequences, row * p.sequence));
        if (page < 0) continue;
        auto* to = at<char>(p.cache, page * p.page + position % kPageTokens * p.token);
        if (is_plain) {
            write_block(p.type, values, count, to, block);
        } else {
            encode_cached_block(p.type, from, to, block);
        }
    }
}

// Grid: x the maximum of rows by the warps of a block, or fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write_rows(CacheWrite p) {
    using namespace simt;
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
