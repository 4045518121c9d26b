// The projected form of attention: weights of any type as rows of floats, and keys and values in f32.
#include "piece.hpp"
#include "project_rows.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

// 16 elements of a row of any type.
SIMT_DEVICE void decode_weights(int type, const char* row, int piece, float* to) {
    switch (type) {
#define TESSERA_FLOATS(id, Name)                                                                \
    case TSR_TYPE_##id:                                                                         \
        for (int i = 0; i < 16; ++i) to[i] = float_element<TSR_TYPE_##id>(row, piece * 16 + i); \
        return;
        TSR_FLOAT_TYPES(TESSERA_FLOATS)
#undef TESSERA_FLOATS
#define TESSERA_BLOCKS(id, Name)                                                 \
    case TSR_TYPE_##id: {                                                        \
        const Piece p = Format<TSR_TYPE_##id>::load(row, piece);                 \
        SIMT_UNROLL                                                              \
        for (int i = 0; i < 16; ++i) to[i] = value_of(p, p.codes[i / 4], i % 4); \
        return;                                                                  \
    }
        TSR_BLOCK_TYPES(TESSERA_BLOCKS)
#undef TESSERA_BLOCKS
        default:
            for (int i = 0; i < 16; ++i) to[i] = bits_as<float>(0x7FFFFFFFu);
    }
}

constexpr int kDepth = 32;  // elements of latent rows that a step multiplies

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the rows of a head, y the heads.
SIMT_KERNEL(kWeightThreads, 4) projection_weights(ProjectionWeights p) {
    SIMT_SHARED(float, row, kMaximumLatent);
    const int i = static_cast<int>(block_index().x), head = static_cast<int>(block_index().y);
    const int thread = static_cast<int>(thread_index().x);
    const char* from = i < p.nk ? at<char>(p.wk, i * p.wk_row + head * p.wk_head)
                                : at<char>(p.wv, (i - p.nk) * p.wv_row + head * p.wv_head);
    const int type = i < p.nk ? p.wk_type : p.wv_type;
    for (int piece = thread; piece < p.latent / 16; piece += kWeightThreads)
        decode_weights(type, from, piece, row + piece * 16);
    sync_block();
    float scale = 1;
    if (p.hadamard) {
        const int block = p.latent & -p.latent;
        scale = rsqrtf(static_cast<float>(block));
        for (int half = 1; half < block; half *= 2) {
            for (int pair = thread; pair < p.latent / 2; pair += kWeightThreads) {
                const int low = pair / half * 2 * half + pair % half;
                const float a = row[low], b = row[low + half];
                row[low] = a + b;
                row[low + half] = a - b;
            }
            sync_block();
        }
    }
    const int64_t first = (int64_t{head} * (p.nk + p.nv) + i) * p.latent;
    for (int e = thread; e < p.latent; e += kWeightThreads) {
        const float value = row[e] * scale;
        if (p.half) {
            static_cast<half_t*>(p.to)[first + e] = from_float<half_t>(value);
        } else {
            static_cast<float*>(p.to)[first + e] = value;
        }
    }
}

// One block.
SIMT_KERNEL(kSequenceThreads, 1) sequence_ends(SequenceEnds p) {
    const RowRange range = actual_rows(p.rows);
    const int thread = static_cast<int>(thread_index().x);
    for (int s = thread; s < p.count; s += kSequenceThreads) p.ends[s] = 0;
    sync_block();
    for (int row = range.begin + thread; row < range.end; row += kSequenceThreads) {
        const int position = *at<int32_t>(p.positions, row * p.position);
        const int sequence = *at<int32_t>(p.sequences, row * p.sequence);
        if (position >= 0 && position / kPageTokens < p.table && sequence >= 0 && sequence < p.count) {
            atomic_max(p.ends + sequence, position + 1);
            continue;
        }
        for (int i = 0; i < p.heads * p.dv; ++i)
            at<float>(p.y, i / p.dv * p.y_head + row * p.y_row)[i % p.dv] = bits_as<float>(0x7FFFFFFFu);
    }
}

// Grid: x the outputs by kProjectedOutputs, then the heads, for what is not projected; y the pages of the window.
SIMT_KERNEL(kProjectionThreads, 2) project_f32(Projection p) {
    SIMT_SHARED(float, latents, kPageTokens*(kDepth + 1));
    SIMT_SHARED(float, weights, kProjectedOutputs*(kDepth + 1));
    const LatentPage page = latent_page(p);
    if (page.count <= 0) return;
    const int outputs = p.heads * (p.nk + p.nv), tiles = (outputs + kProjectedOutputs - 1) / kProjectedOutputs;
    const int first = static_cast<int>(block_index().x) * kProjectedOutputs;
    if (first >= tiles * kProjectedOutputs)
        return copy_unprojected<float>(p, page, first / kProjectedOutputs - tiles, [](float v) { return v; });
    const int thread = static_cast<int>(thread_index().x), row = thread / 16, column = thread % 16;
    float sums[4][4] = {};
    for (int depth = 0; depth < p.latent; depth += kDepth) {
        const int elements = minimum(kDepth, p.latent - depth);
        sync_block();
        if (thread < kPageTokens) {
            float* to = latents + thread * (kDepth + 1);
            if (thread < page.count && page.page >= 0) {
                decode_piece(p.type, latent_row(p, page, thread), depth / kPiece, elements,
                             [&](int e, float value) { to[e] = value; });
            } else {
                // Past the end nothing is written; without a page all is not-a-number.
                for (int e = 0; e < elements; ++e) to[e] = bits_as<float>(0x7FFFFFFFu);
            }
        }
        for (int i = thread; i < kProjectedOutputs * kDepth; i += kProjectionThreads) {
            const int o = i / kDepth, e = i % kDepth;
            if (e < elements) {
                weights[o * (kDepth + 1) + e] =
                    first + o < outputs
                        ? static_cast<const float*>(p.weights)[int64_t{first + o} * p.latent + depth + e]
                        : 0.f;
            }
        }
        sync_block();
        for (int e = 0; e < elements; ++e) {
            float a[4], b[4];
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                a[i] = latents[(row + 16 * i) * (kDepth + 1) + e];
                b[i] = weights[(column + 16 * i) * (kDepth + 1) + e];
            }
            SIMT_UNROLL
            for (int i = 0; i < 4; ++i) {
                SIMT_UNROLL
                for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(a[i], b[j], sums[i][j]);
            }
        }
    }
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        SIMT_UNROLL
        for (int j = 0; j < 4; ++j) {
            const int token = row + 16 * i, o = first + column + 16 * j;
            if (token < page.count && o < outputs) *projected<float>(p, page, token, o) = sums[i][j];
        }
    }
}
