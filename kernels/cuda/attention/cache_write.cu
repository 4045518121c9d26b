// cache_write: a thread a piece of 32 elements.
#include "cache_rows.hpp"
#include "../rows.hpp"

using namespace tessera::cuda_kernels;

// Grid: x the pieces of a row by kCacheWriteThreads, y the maximum of rows or fewer.
SIMT_KERNEL(kCacheWriteThreads, 4) cache_write(CacheWrite p) {
    using namespace simt;
    const RowRange range = actual_rows(p.rows);
    const int piece = static_cast<int>(block_index().x * kCacheWriteThreads + thread_index().x);
    if (piece * kPiece >= p.n) return;
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int page = page_of(p.pages, position, *at<int32_t>(p.sequences, row * p.sequence));
        if (page < 0) continue;
        const float* from = at<float>(p.x, row * p.x_row) + piece * kPiece;
        encode_piece(p.type, from, minimum(kPiece, p.n - piece * kPiece),
                     at<char>(p.cache, page * p.page + position % kPageTokens * p.token), piece);
    }
}
