// Arguments of what the projected variant of attention does before it attends: weights as rows of one type, and keys
// and values of a window of pages, computed from latent rows of the cache; see arguments.hpp.
#pragma once

#include "cache.hpp"

namespace tessera::cuda_kernels {

// Row i < nk of head h is row i of wk, the nv others are those of wv: rows of `latent` elements, as f16 or f32.
struct ProjectionWeights {
    const void *wk, *wv;
    void* to;
    int64_t wk_row, wk_head, wv_row, wv_head;  // strides
    int32_t wk_type, wv_type;
    int32_t nk, nv, latent;
    int32_t hadamard;  // 1: rows are multiplied with the matrix of the op "hadamard"
    int32_t half;      // 1: f16
    int32_t reserved;
};

inline constexpr int kWeightThreads = 128;
inline constexpr int kMaximumLatent = 4096;

// ends[s] = how many tokens rows of sequence s see at most; 0 if there are none. starts[s] = how many pages hold those
// of the sequences before s; starts[count] = of all. Rows of no sequence, or past the page table, get not-a-number.
struct SequenceEnds {
    const void *positions, *sequences;
    void* y;
    int32_t *ends, *starts;
    Rows rows;
    int64_t position, sequence, y_head, y_row;  // strides
    int32_t count;                              // of sequences
    int32_t table;                              // positions of the page table, in pages
    int32_t heads, dv;
};

inline constexpr int kSequenceThreads = 256;

// Keys and values of the window's pages (Attention::window_page): of a token heads * dk and heads * dv elements, one
// head after the other.
struct Projection {
    const void *cache, *weights;
    void *k, *v;
    const int32_t *ends, *starts;
    Pages pages;
    int64_t token, page;  // strides of the cache
    int32_t type;         // of the cache
    int32_t heads, latent, unprojected, nk, nv;
    int32_t window_page;
    int32_t aligned;  // 1: rows of the cache begin at multiples of 16 bytes
};

// A block computes that many outputs, of heads one after the other, of the tokens of a page: as f16 on tensor cores, or
// as f32.
inline constexpr int kProjectedOutputs = 64, kProjectedOutputsF32 = 128;
inline constexpr int kProjectionThreads = 256, kProjectionThreadsF32 = 128;

}  // namespace tessera::cuda_kernels
