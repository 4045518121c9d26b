// Arguments of ops over the cache; see arguments.hpp. Positions, sequences and pages are checked on the device, since
// nobody else sees them: what is out of range is not written, and gives not-a-number where it was to be read.
#pragma once

#include "../arguments.hpp"

namespace tessera::cuda_kernels {

inline constexpr int kPageTokens = 64;  // TSR_PAGE_TOKENS

// X(id): types that can be cached.
#define TESSERA_CACHED_TYPES(X) X(F32) X(F16) X(BF16) X(Q8_0) X(Q8_KV) X(Q6_0) X(Q5_0) X(Q5_1) X(Q4_0) X(Q4_1) X(IQ4_NL)

// Where a token of a sequence is: the page table, i32 [positions, sequences], and how tokens of pages follow each
// other.
struct Pages {
    const void* table;
    int64_t by_position, by_sequence;  // strides of the table
    int32_t positions, sequences;      // extents of the table
    int32_t pages;                     // that there are
    int32_t reserved;
};

// Row r of x goes to token positions[r] of sequence sequences[r].
struct CacheWrite {
    const void *x, *positions, *sequences;
    void* cache;
    Pages pages;
    Rows rows;
    int64_t x_row, position, sequence;  // strides
    int64_t token, page;                // strides of the cache
    int32_t n;                          // elements of a row
    int32_t type;                       // of the cache
};

inline constexpr int kCacheWriteThreads = 128;
inline constexpr int kFloatsOfThread = 8;  // that one of them writes where the cache has floats

// Attention of each row's heads over the tokens that it sees. Keys and values are rows of the cache; without `v` a
// value is the first dv elements of its key.
struct Attention {
    const void *q, *k, *v, *positions, *sequences;
    void* y;
    void* partial;  // of each row, head and split dv sums, the maximum and the sum of weights, f32; rows of one span
                    // have none
    Pages pages;
    Rows rows;
    int64_t q_head, q_row, y_head, y_row, position, sequence;  // strides
    int64_t k_token, k_page, v_token, v_page;                  // strides of the caches
    int32_t heads;
    int32_t group;  // heads that share a head of the cache
    int32_t dk, dv;
    int32_t k_type, v_type;
    int32_t splits;    // the maximum of spans of tokens of a row, each of a block of its own
    float scale_log2;  // of scores, times log2(e)
    // Windows: `k` and `v` hold window_pages pages of tokens, those from window_page on of the pages of all sequences
    // one after the other, of which page_starts[s] is the first of sequence s (SequenceEnds). What windows before left
    // of a row is in y, not divided by the sum of weights yet, and in `running`: [rows, heads, 2], maximum and sum,
    // f32. 0 pages: no windows.
    const int32_t* page_starts;
    int32_t window_page, window_pages;
    void* running;
    int32_t seen_tokens;  // the last that a row sees, its own included; 0: all
    int32_t unused;
    const void* sinks;    // f32, a score of each head that no token has; nullptr: none
    int64_t sink;         // stride
    float sink_exponent;  // sums of weights are 2^this times those relative to the maximum
    int32_t reserved;
};

inline constexpr int kAttentionThreads = 128;
inline constexpr int kAttentionHeads = 4;    // of a block, one for each warp
inline constexpr int kAttentionTokens = 16;  // of a tile
inline constexpr int kMaximumValues = 512;   // dv
inline constexpr int kMaximumSplits = 512;

// Floats in shared memory lie with a gap after each 32, so that threads which decode neighbouring blocks of 32 elements
// write to different banks.
constexpr int padded(int elements) {
    return elements + elements / 32;
}
constexpr int attention_row(int dk, int dv) {
    return padded(dk > dv ? dk : dv) + 1;
}
constexpr int attention_shared_bytes(int dk, int dv) {
    return 4 * (kAttentionHeads * (padded(dk) + 1) + kAttentionTokens * attention_row(dk, dv) +
                kAttentionHeads * (kAttentionTokens + 3));
}

}  // namespace tessera::cuda_kernels
