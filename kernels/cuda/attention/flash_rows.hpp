// The rows of queries that a block of flash attention has: a token's heads that share keys are rows one after the
// other, and neighbouring rows of one sequence are a run.
#pragma once

#include "spans.hpp"

namespace tessera::cuda_kernels {

inline constexpr int kNoToken = 0x7FFFFFFF;  // past all

// Of each row of a block's tile.
struct alignas(16) FlashRow {
    int32_t first, last;  // tokens that it attends to in this split; none: first > last
    int32_t sequence;     // -1: none
    float scale;          // of its scores, times log2(e)
};

// Which rows of queries there are: the first of the launch, rows * group, and the first of the block's tile.
struct FlashRows {
    int32_t begin, total, first;
};

// Tokens that some rows see.
struct TokenBounds {
    int first, end;
};

// Queries of row `index`, in the order of tiles.
SIMT_DEVICE const float* query_of(const Attention& p, const FlashRows& rows, int index) {
    const int kv_head = static_cast<int>(simt::block_index().y);
    return at<float>(p.q, (kv_head * p.group + index % p.group) * p.q_head + (rows.begin + index / p.group) * p.q_row);
}

// The kRows rows of the tile, past the last one as rows that see nothing, by all threads of the block; to `whole`,
// unless it is null, whether a row has one span alone.
template <int kRows, int kThreads>
SIMT_DEVICE void read_flash_rows(const Attention& p, const FlashRows& rows, FlashRow* to, uint8_t* whole = nullptr) {
    using namespace simt;
    for (int m = static_cast<int>(thread_index().x); m < kRows; m += kThreads) {
        FlashRow row{0, -1, -1, 0};
        if (const int index = rows.first + m; index < rows.total) {
            const TokenSpan span = span_of_row(p, rows.begin + index / p.group, static_cast<int>(block_index().z));
            row = {span.first, span.last, span.sequence, 0};
            if (whole) whole[m] = span.spans == 1;
        }
        to[m] = row;
    }
}

// The first row after `begin` that is of another sequence. By whole warps.
SIMT_DEVICE int end_of_flash_run(const FlashRow* rows, int begin, int count) {
    using namespace simt;
    const int sequence = rows[begin].sequence, l = static_cast<int>(lane());
    for (int m = begin; m < count; m += 32) {
        const bool same = m + l < count && rows[m + l].sequence == sequence;
        unsigned others = ~vote_ballot(same);
        if (others == 0) continue;
        for (; (others & 1) == 0; others >>= 1) ++m;
        return m;
    }
    return count;
}

// What rows `begin` to `end` see. By whole warps.
SIMT_DEVICE TokenBounds bounds_of_flash_rows(const FlashRow* rows, int begin, int end) {
    using namespace simt;
    TokenBounds b{kNoToken, 0};
    for (int m = begin; m < end; m += 32) {
        const FlashRow& row = rows[minimum(m + static_cast<int>(lane()), end - 1)];
        if (row.first > row.last) continue;
        b.first = minimum(b.first, row.first);
        b.end = maximum(b.end, row.last + 1);
    }
    SIMT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) {
        b.first = minimum(b.first, shuffle_xor(b.first, mask));
        b.end = maximum(b.end, shuffle_xor(b.end, mask));
    }
    return b;
}

}  // namespace tessera::cuda_kernels
