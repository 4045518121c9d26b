// The projected variant of attention: weights of any type as rows of floats, and keys and values in f32.
#include "../formats/sub_block.hpp"
#include "project_rows.hpp"
#include "raw_rows.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

// 16 elements of a row of any type.
SIMT_DEVICE void decode_weights(int type, const char* row, int sub_block, float* to) {
    switch (type) {
#define TESSERA_FLOATS(id, Name)                                                                \
    case TSR_TYPE_##id:                                                                         \
        for (int i = 0; i < 16; ++i) to[i] = float_element<TSR_TYPE_##id>(row, sub_block * 16 + i); \
        return;
        TSR_FLOAT_TYPES(TESSERA_FLOATS)
#undef TESSERA_FLOATS
#define TESSERA_BLOCKS(id, Name)                                                 \
    case TSR_TYPE_##id: {                                                        \
        const SubBlock p = Format<TSR_TYPE_##id>::load(row, sub_block);                 \
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

// A thread's part of a page's tokens and a block's outputs: 8 of each (multiply_f32.hpp).
class ProjectF32 {
  public:
    static constexpr int kTokens = kPageTokens, kOutputs = kProjectedOutputsF32, kOwn = 8;
    static constexpr int kStage = (kTokens + kOutputs) * kDepthStride;  // floats
    static_assert(kTokens == 2 * 4 * kOwn && kOutputs == 2 * 8 * kOwn && kProjectionThreadsF32 == kRawThreads);

    SIMT_DEVICE ProjectF32(const Projection& p, const LatentPage& page, int first, int outputs, float* memory)
        : p_(p),
          page_(page),
          first_(first),
          outputs_(outputs),
          memory_(memory),
          token_(static_cast<int>(warp()) / 2 * 32 + lane_row()),
          output_(static_cast<int>(warp()) % 2 * 64 + lane_column()) {}

    SIMT_DEVICE void run() {
        float sums[kOwn][kOwn];
        SIMT_UNROLL
        for (int i = 0; i < kOwn * kOwn; ++i) sums[i / kOwn][i % kOwn] = 0;
        const int steps = p_.latent / kDepth;
        load(0);
        SIMT_KEEP_LOOP
        for (int step = 0; step < steps; ++step) {
            float* stage = memory_ + step % 2 * kStage;
            latents_.store(p_.type, stage);
            weights_.store(TSR_TYPE_F32, stage + kTokens * kDepthStride);
            sync_block();
            if (step + 1 < steps) load(step + 1);
            multiply_rows(sums, stage + token_ * kDepthStride, stage + (kTokens + output_) * kDepthStride);
        }
        SIMT_UNROLL
        for (int i = 0; i < kOwn; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < kOwn; ++j) {
                const int token = token_ + 4 * i, o = first_ + output_ + 8 * j;
                if (token >= page_.count || o >= outputs_) continue;
                // Without a page all is not-a-number.
                *projected<float>(p_, page_, token, o) = page_.page < 0 ? bits_as<float>(0x7FFFFFFFu) : sums[i][j];
            }
        }
    }

  private:
    SIMT_DEVICE void load(int step) {
        latents_.load(p_.type, step * kDepth, p_.aligned != 0, [&](int token) -> const char* {
            return token < page_.count && page_.page >= 0 ? latent_row(p_, page_, token) : nullptr;
        });
        weights_.load(TSR_TYPE_F32, step * kDepth, true, [&](int row) -> const char* {
            return first_ + row < outputs_ ? at<char>(p_.weights, int64_t{first_ + row} * p_.latent * 4) : nullptr;
        });
    }

    const Projection& p_;
    const LatentPage& page_;
    int first_, outputs_;
    float* memory_;
    int token_, output_;
    RawRows<kTokens, kDepth, kDepthStride, RawTypes::kAll> latents_;
    RawRows<kOutputs, kDepth, kDepthStride, RawTypes::kF32> weights_;
};

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
    for (int sub_block = thread; sub_block < p.latent / 16; sub_block += kWeightThreads)
        decode_weights(type, from, sub_block, row + sub_block * 16);
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
    SIMT_SHARED(int32_t, sums, kSequenceThreads);
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
    sync_block();
    // Each thread sums the pages of neighbouring sequences, and begins where the threads before it end.
    const int each = (p.count + kSequenceThreads - 1) / kSequenceThreads;
    const int begin = minimum(thread * each, p.count), end = minimum(begin + each, p.count);
    const auto pages = [&](int s) { return (p.ends[s] + kPageTokens - 1) / kPageTokens; };
    int sum = 0;
    for (int s = begin; s < end; ++s) sum += pages(s);
    sums[thread] = sum;
    sync_block();
    int start = 0;
    for (int before = 0; before < thread; ++before) start += sums[before];
    for (int s = begin; s < end; ++s) {
        p.starts[s] = start;
        start += pages(s);
    }
    if (thread == kSequenceThreads - 1) p.starts[p.count] = start;
}

// Grid: x the outputs by kProjectedOutputsF32, then the heads, for what is not projected; y the pages of the window.
SIMT_KERNEL(kProjectionThreadsF32, 3) project_f32(Projection p) {
    SIMT_SHARED(Float4, memory, 2 * ProjectF32::kStage / 4);
    const LatentPage page = latent_page(p);
    if (page.count <= 0) return;
    const int outputs = p.heads * (p.nk + p.nv), tiles = (outputs + kProjectedOutputsF32 - 1) / kProjectedOutputsF32;
    const int tile = static_cast<int>(block_index().x);
    if (tile >= tiles) return copy_unprojected<float>(p, page, tile - tiles, [](float v) { return v; });
    ProjectF32(p, page, tile * kProjectedOutputsF32, outputs, reinterpret_cast<float*>(memory)).run();
}
