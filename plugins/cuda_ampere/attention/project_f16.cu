// Keys and values of the projected variant of attention on tensor cores, as f16: 64 tokens by 64 outputs a block.
#include "kernels/cuda/formats/sub_block_small.hpp"
#include "kernels/cuda/attention/project_rows.hpp"
#include "../products/decode_f16.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

constexpr int kDepth = 64;  // elements of latent rows that a stage holds: 8 vectors, exchanged as in flash_loads.hpp
constexpr int kStages = 3;
constexpr int kTileBytes = kPageTokens * kDepth * 2, kStageBytes = 2 * kTileBytes;
static_assert(kProjectedOutputs == kPageTokens);

SIMT_DEVICE half_t saturated(float v) {
    return from_float<half_t>(v > 65504.f ? 65504.f : v < -65504.f ? -65504.f : v);
}

// The stage's part of the latent rows and of the weights' rows; a row by four threads. What is past the last row is
// zeros.
SIMT_DEVICE void load(const Projection& p, const LatentPage& page, int first, int outputs, int depth,
                      unsigned char* stage) {
    const int row = static_cast<int>(thread_index().x) / 4, part = static_cast<int>(thread_index().x) % 4;
    const bool latent = row < page.count && page.page >= 0, weight = first + row < outputs;
    const char* from = latent ? latent_row(p, page, row) : nullptr;
    const char* weights = static_cast<const char*>(p.weights);
    if (weight) weights += (int64_t{first + row} * p.latent + depth) * 2;
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i) {
        const int vector = part * 2 + i, place = row * (kDepth * 2) + (vector ^ row % 8) * 16;
        const bool there = depth + vector * 8 < p.latent;
        copy_async16(stage + kTileBytes + place, weights + (weight && there ? vector * 16 : 0),
                     weight && there ? 16 : 0);
        if (p.type == TSR_TYPE_F16 && p.aligned) {
            copy_async16(stage + place,
                         latent && there ? from + (depth + vector * 8) * 2 : static_cast<const char*>(p.cache),
                         latent && there ? 16 : 0);
        }
    }
    if (p.type == TSR_TYPE_F16 && p.aligned) return;
    uint32_t words[8] = {};
    if (latent && depth + part * 16 < p.latent) decode_cached(p.type, from, depth / 16 + part, words);
    SIMT_UNROLL
    for (int i = 0; i < 2; ++i) {
        *reinterpret_cast<UInt4*>(stage + row * (kDepth * 2) + ((part * 2 + i) ^ row % 8) * 16) = {
            words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3]};
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: as project_f32.
SIMT_KERNEL(kProjectionThreads, 2) project_f16(Projection p) {
    SIMT_SHARED(UInt4, memory, kStages * kStageBytes / 16);
    auto* const stages = reinterpret_cast<unsigned char*>(memory);
    const LatentPage page = latent_page(p);
    if (page.count <= 0) return;
    const int outputs = p.heads * (p.nk + p.nv), tiles = (outputs + kProjectedOutputs - 1) / kProjectedOutputs;
    const int first = static_cast<int>(block_index().x) * kProjectedOutputs;
    if (first >= tiles * kProjectedOutputs)
        return copy_unprojected<half_t>(p, page, first / kProjectedOutputs - tiles,
                                        [](float v) { return saturated(v); });
    // Eight warps: 16 tokens each by 32 outputs.
    const int w = static_cast<int>(warp()), l = static_cast<int>(lane());
    const int row = w % 4 * 16 + l % 16, column = w / 4 * 32 + l % 8 + l / 16 * 8;
    float sums[4][4] = {};
    const int steps = (p.latent + kDepth - 1) / kDepth;
    SIMT_UNROLL
    for (int i = 0; i < kStages - 1; ++i) {
        if (i < steps) load(p, page, first, outputs, i * kDepth, stages + i * kStageBytes);
        copy_async_commit();
    }
    for (int i = 0; i < steps; ++i) {
        copy_async_wait<kStages - 2>();
        sync_block();
        if (const int next = i + kStages - 1; next < steps)
            load(p, page, first, outputs, next * kDepth, stages + next % kStages * kStageBytes);
        copy_async_commit();
        const unsigned char* stage = stages + i % kStages * kStageBytes;
        SIMT_UNROLL
        for (int k = 0; k < kDepth / 16; ++k) {
            uint32_t a[4];
            ldmatrix_x4(a, stage + row * (kDepth * 2) + ((k * 2 + l / 16) ^ row % 8) * 16);
            SIMT_UNROLL
            for (int n = 0; n < 2; ++n) {
                uint32_t b[4];
                const int output = column + n * 16;
                ldmatrix_x4(b, stage + kTileBytes + output * (kDepth * 2) + ((k * 2 + l / 8 % 2) ^ output % 8) * 16);
                const uint32_t b0[2] = {b[0], b[1]}, b1[2] = {b[2], b[3]};
                mma_f16(sums[2 * n], a, b0);
                mma_f16(sums[2 * n + 1], a, b1);
            }
        }
    }
    SIMT_UNROLL
    for (int n = 0; n < 4; ++n) {
        SIMT_UNROLL
        for (int e = 0; e < 4; ++e) {
            const int token = w % 4 * 16 + l / 4 + e / 2 * 8, o = first + w / 4 * 32 + n * 8 + l % 4 * 2 + e % 2;
            const float value = page.page < 0 ? bits_as<float>(0x7FFFFFFFu) : sums[n][e];
            if (token < page.count && o < outputs) *projected<half_t>(p, page, token, o) = saturated(value);
        }
    }
}
