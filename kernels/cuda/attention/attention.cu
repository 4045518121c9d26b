// Attention in f32 with a running maximum and sum over tiles of tokens (arXiv 2205.14135), in its plain and its prefix
// variant. A block computes up to four heads that share keys, of one row and, with several splits, of a part of the
// tokens; `combine` joins the parts. Each tile of the cache is decoded to shared memory once for all heads.
#include "combine.hpp"
#include "spans.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

constexpr int kHeads = kAttentionHeads, kTokens = kAttentionTokens, kThreads = kAttentionThreads;
constexpr int kValues = kMaximumValues / kThreads;  // of a thread and head
constexpr int kTokensOfWarp = kTokens / (kThreads / 32);
static_assert(kHeads == kThreads / 32, "a warp a head");

// Shared memory of a block.
struct Shared {
    float *q, *tile, *weights, *factors, *maxima, *sums;
    int q_row, tile_row;
};

SIMT_DEVICE Shared divide(unsigned char* memory, const Attention& p) {
    Shared s{};
    s.q_row = padded(p.dk) + 1;
    s.tile_row = attention_row(p.dk, p.dv);
    s.q = reinterpret_cast<float*>(memory);
    s.tile = s.q + kHeads * s.q_row;
    s.weights = s.tile + kTokens * s.tile_row;
    s.factors = s.weights + kHeads * kTokens;
    s.maxima = s.factors + kHeads;
    s.sums = s.maxima + kHeads;
    return s;
}

// Rows of `n` elements, which begin at element `offset` of `count` tokens of the cache, to the tile.
SIMT_DEVICE void load_tile(const Shared& s, int type, const char* first, int64_t stride, int offset, int n, int count) {
    const int blocks = (n + kCacheBlock - 1) / kCacheBlock;
    for (int i = static_cast<int>(thread_index().x); i < count * blocks; i += kThreads) {
        const int token = i / blocks, block = i % blocks;
        float* to = s.tile + token * s.tile_row + padded(block * kCacheBlock);
        decode_cached_block(type, first + token * stride, offset + block * kCacheBlock,
                            minimum(kCacheBlock, n - block * kCacheBlock), [&](int e, float value) { to[e] = value; });
    }
}

// Scores of the warp's tokens for all heads; -infinity past `count`.
SIMT_DEVICE void score(const Shared& s, const Attention& p, int heads, int count) {
    const int first = static_cast<int>(warp()) * kTokensOfWarp, l = static_cast<int>(lane());
    float sums[kTokensOfWarp][kHeads] = {};
    for (int d = l; d < p.dk; d += 32) {
        float q[kHeads];
        SIMT_UNROLL
        for (int h = 0; h < kHeads; ++h) q[h] = h < heads ? s.q[h * s.q_row + padded(d)] : 0.f;
        SIMT_UNROLL
        for (int t = 0; t < kTokensOfWarp; ++t) {
            if (first + t >= count) break;
            const float k = s.tile[(first + t) * s.tile_row + padded(d)];
            SIMT_UNROLL
            for (int h = 0; h < kHeads; ++h) sums[t][h] = fmaf(q[h], k, sums[t][h]);
        }
    }
    SIMT_UNROLL
    for (int t = 0; t < kTokensOfWarp; ++t) {
        SIMT_UNROLL
        for (int h = 0; h < kHeads; ++h) {
            const float sum = warp_sum(sums[t][h]);
            if (l == 0 && h < heads) s.weights[h * kTokens + first + t] = first + t < count ? sum : -infinity();
        }
    }
}

// Scores of the warp's head become weights 2^(score - maximum).
SIMT_DEVICE void weigh(const Shared& s, int heads, float& maximum_score, float& sum) {
    const int h = static_cast<int>(warp()), t = static_cast<int>(lane());
    if (h >= heads) return;
    const float mine = t < kTokens ? s.weights[h * kTokens + t] : -infinity();
    const float largest = fmaxf(maximum_score, warp_maximum(mine));
    const float weight = exp2f(mine - largest), factor = exp2f(maximum_score - largest);
    sum = sum * factor + warp_sum(weight);
    maximum_score = largest;
    if (t < kTokens) s.weights[h * kTokens + t] = weight;
    if (t == 0) s.factors[h] = factor;
}

SIMT_DEVICE void accumulate(const Shared& s, const Attention& p, int heads, int count, float (&sums)[kHeads][kValues]) {
    SIMT_UNROLL
    for (int h = 0; h < kHeads; ++h) {
        if (h >= heads) break;
        const float factor = s.factors[h];
        SIMT_UNROLL
        for (int i = 0; i < kValues; ++i) sums[h][i] *= factor;
    }
    for (int t = 0; t < count; ++t) {
        float value[kValues];
        SIMT_UNROLL
        for (int i = 0; i < kValues; ++i) {
            const int e = static_cast<int>(thread_index().x) + i * kThreads;
            value[i] = e < p.dv ? s.tile[t * s.tile_row + padded(e)] : 0.f;
        }
        SIMT_UNROLL
        for (int h = 0; h < kHeads; ++h) {
            if (h >= heads) break;
            const float weight = s.weights[h * kTokens + t];
            SIMT_UNROLL
            for (int i = 0; i < kValues; ++i) sums[h][i] = fmaf(weight, value[i], sums[h][i]);
        }
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the tiles of heads, y the maximum of rows or fewer, z the splits. Dynamic shared memory:
// attention_shared_bytes.
SIMT_KERNEL(kAttentionThreads, 2) attention(Attention p) {
    SIMT_DYNAMIC_SHARED(memory);
    const Shared s = divide(memory, p);
    const RowRange range = actual_rows(p.rows);
    const int tiles = (p.group + kHeads - 1) / kHeads;  // of heads that share keys
    const int kv_head = static_cast<int>(block_index().x) / tiles;
    const int first_of_group = static_cast<int>(block_index().x) % tiles * kHeads;
    const int first_head = kv_head * p.group + first_of_group, heads = minimum(kHeads, p.group - first_of_group);
    const int split = static_cast<int>(block_index().z), thread = static_cast<int>(thread_index().x);
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        sync_block();  // the row before has been read
        for (int i = thread; i < heads * p.dk; i += kThreads) {
            const int h = i / p.dk, e = i % p.dk;
            s.q[h * s.q_row + padded(e)] =
                at<float>(p.q, (first_head + h) * p.q_head + row * p.q_row)[e] * p.scale_log2;
        }
        const TokenSpan span = span_of_row(p, row, split);
        if (span.first > span.last) continue;
        const int sequence = span.sequence, end = span.last + 1;
        float largest = -infinity(), sum = 0, sums[kHeads][kValues] = {};
        if (resumes(p, span.first)) {
            SIMT_UNROLL
            for (int h = 0; h < kHeads; ++h) {
                if (h >= heads) break;
                const float* y = at<float>(p.y, (first_head + h) * p.y_head + row * p.y_row);
                SIMT_UNROLL
                for (int i = 0; i < kValues; ++i) {
                    if (thread + i * kThreads < p.dv) sums[h][i] = y[thread + i * kThreads];
                }
            }
            if (const int h = static_cast<int>(warp()); h < heads) {
                const float* running = running_of(p, row - range.begin, first_head + h);
                largest = running[0];
                sum = running[1];
            }
        }
        for (int token = span.first, count = 0; token < end; token += count) {
            count = minimum(minimum(kTokens, end - token), kPageTokens - token % kPageTokens);
            const int page = key_page(p, token, sequence);
            if (page < 0) {
                sum = largest = bits_as<float>(0x7FFFFFFFu);
                break;
            }
            const auto* k = at<char>(p.k, page * p.k_page + token % kPageTokens * p.k_token);
            sync_block();  // the tile before has been read
            load_tile(s, p.k_type, k, p.k_token, kv_head * p.dk, p.dk, count);
            sync_block();
            score(s, p, heads, count);
            sync_block();
            weigh(s, heads, largest, sum);
            if (p.v) {
                const auto* v = at<char>(p.v, page * p.v_page + token % kPageTokens * p.v_token);
                load_tile(s, p.v_type, v, p.v_token, kv_head * p.dv, p.dv, count);
            }
            sync_block();
            accumulate(s, p, heads, count, sums);
        }
        if (lane() == 0) {
            s.maxima[warp()] = largest;
            s.sums[warp()] = sum;
        }
        sync_block();
        SIMT_UNROLL
        for (int h = 0; h < kHeads; ++h) {
            if (h >= heads) break;
            const int head = first_head + h;
            if (span.spans == 1 || p.window_pages > 0) {
                auto* y = at<float>(p.y, head * p.y_head + row * p.y_row);
                const float divisor = span.spans == 1 ? with_sink(p, head, s.maxima[h], s.sums[h]) : 1.f;
                SIMT_UNROLL
                for (int i = 0; i < kValues; ++i) {
                    if (thread + i * kThreads < p.dv) y[thread + i * kThreads] = sums[h][i] / divisor;
                }
                if (p.window_pages > 0 && thread == 0)
                    store_global(running_of(p, row - range.begin, head), Float2{s.maxima[h], s.sums[h]});
                continue;
            }
            auto* part = static_cast<float*>(p.partial) +
                         ((static_cast<int64_t>(row - range.begin) * p.heads + head) * p.splits + split) * (p.dv + 2);
            SIMT_UNROLL
            for (int i = 0; i < kValues; ++i) {
                if (thread + i * kThreads < p.dv) part[thread + i * kThreads] = sums[h][i];
            }
            if (thread == 0) {
                part[p.dv] = s.maxima[h];
                part[p.dv + 1] = s.sums[h];
            }
        }
    }
}

// Joins the spans of rows that have several. Grid: x the heads, y the maximum of rows or fewer, z the parts of
// kCombineColumns elements of a head or fewer. A warp adds every fourth span of a part; the order of sums does not
// depend on the grid.
SIMT_KERNEL(kAttentionThreads, 6) combine(Attention p) {
    constexpr int kWarps = kThreads / 32, kAtOnce = 16;
    static_assert(kCombineColumns == 32, "a lane each");
    SIMT_SHARED(float, factors, kMaximumSplits);
    SIMT_SHARED(float, of_warps, 2 * kWarps);
    SIMT_SHARED(float, sums, kThreads);
    const RowRange range = actual_rows(p.rows);
    const int head = static_cast<int>(block_index().x), thread = static_cast<int>(thread_index().x);
    const int w = static_cast<int>(warp()), l = static_cast<int>(lane());
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int spans = span_of_row(p, row, 0).spans;
        if (spans == 1) continue;
        const int64_t stride = p.dv + 2;
        const auto* parts = static_cast<const float*>(p.partial) +
                            (static_cast<int64_t>(row - range.begin) * p.heads + head) * p.splits * stride;
        // All loads are asked for before the first one is there, since a block waits for memory most of the time: those
        // of the first elements, too.
        int first = static_cast<int>(block_index().z) * kCombineColumns;
        float ahead[kAtOnce];
        SIMT_UNROLL
        for (int n = 0; n < kAtOnce; ++n) {
            const bool there = w + n * kWarps < spans && first + l < p.dv;
            ahead[n] = there ? parts[(w + n * kWarps) * stride + first + l] : 0;
        }
        constexpr int kOfThread = kMaximumSplits / kThreads;
        float maxima[kOfThread], weights[kOfThread];
        SIMT_UNROLL
        for (int n = 0; n < kOfThread; ++n) {
            const int i = thread + n * kThreads;
            maxima[n] = i < spans ? parts[i * stride + p.dv] : -infinity();
            weights[n] = i < spans ? parts[i * stride + p.dv + 1] : 0;
        }
        float largest = -infinity(), sum = 0;
        SIMT_UNROLL
        for (int n = 0; n < kOfThread; ++n) largest = fmaxf(largest, maxima[n]);
        largest = warp_maximum(largest);
        sync_block();  // the row before is done
        if (l == 0) of_warps[w] = largest;
        sync_block();
        SIMT_UNROLL
        for (int i = 0; i < kWarps; ++i) largest = fmaxf(largest, of_warps[i]);
        SIMT_UNROLL
        for (int n = 0; n < kOfThread; ++n) {
            const int i = thread + n * kThreads;
            if (i >= spans) break;
            factors[i] = exp2f(maxima[n] - largest);
            sum = fmaf(factors[i], weights[n], sum);
        }
        sum = warp_sum(sum);
        if (l == 0) of_warps[kWarps + w] = sum;
        sync_block();
        sum = 0;
        SIMT_UNROLL
        for (int i = 0; i < kWarps; ++i) sum += of_warps[kWarps + i];
        sum = with_sink(p, head, largest, sum);
        for (const int begin = first; first < p.dv; first += static_cast<int>(grid_size().z) * kCombineColumns) {
            const int e = first + l;
            float value = 0;
            if (e < p.dv) {
                for (int i = w; i < spans; i += kAtOnce * kWarps) {
                    float loaded[kAtOnce];
                    SIMT_UNROLL
                    for (int n = 0; n < kAtOnce; ++n) {
                        const int span = i + n * kWarps;
                        loaded[n] = first == begin && i == w ? ahead[n] : span < spans ? parts[span * stride + e] : 0;
                    }
                    SIMT_UNROLL
                    for (int n = 0; n < kAtOnce; ++n) {
                        if (i + n * kWarps < spans) value = fmaf(factors[i + n * kWarps], loaded[n], value);
                    }
                }
            }
            sync_block();  // the part before has been read
            sums[thread] = value;
            sync_block();
            if (w > 0 || e >= p.dv) continue;
            SIMT_UNROLL
            for (int i = 1; i < kWarps; ++i) value += sums[i * 32 + l];
            at<float>(p.y, head * p.y_head + row * p.y_row)[e] = value / sum;
        }
    }
}
