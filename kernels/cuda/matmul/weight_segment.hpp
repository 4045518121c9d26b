// Decoded weights, in registers and in shared memory, of products of many rows in int8.
#pragma once

#include "../formats/sub_block_bits.hpp"
#include "../rows.hpp"
#include "tiles.hpp"

namespace tessera::cuda_kernels {

// A row of weights in shared memory: 64 codes, scales, offsets if the format has any. Vectors of 16 bytes are odd in
// number.
template <class F>
struct WeightSegment {
    static constexpr int kScales = kSegmentElements / F::kScaleElements;
    static constexpr int kOffset = kSegmentElements + 4 * kScales;
    static constexpr int kBytes = F::kOffsets && kScales == 4 ? 112 : 80;
    static_assert(kOffset + (F::kOffsets ? 4 * kScales : 0) <= kBytes && kBytes / 16 % 2 == 1);
};

// kCount neighbouring sub-blocks of a row, on their way through registers.
template <int kType, int kCount>
struct WeightSubBlocks {
    using F = Format<kType>;
    static constexpr int kOfScale = F::kScaleElements / kSubBlockElements;
    uint32_t codes[kCount][4];
    float scales[kCount / kOfScale], offsets[kCount / kOfScale];

    // Sub-blocks `first` and so on, `first` even, of segment `step`; `blocks`: behind the row's prefix, or nullptr for
    // zeros, as past the last sub-block.
    SIMT_DEVICE void load(const char* blocks, float row_scale, int step, int first, int sub_blocks) {
        // Only what differs between threads is computed by each: the block of a step is the same for all.
        constexpr int kOfBlock = F::kBlockElements / kSubBlockElements, kSteps = kOfBlock > 4 ? kOfBlock / 4 : 1;
        const char* from =
            blocks + static_cast<int64_t>(step / kSteps * (kOfBlock > 4 ? 1 : 4 / kOfBlock)) * F::kBlockBytes;
        const auto pair = static_cast<unsigned>(step % kSteps * 2 + first / 2);  // of 32 elements
        SIMT_UNROLL
        for (int i = 0; i < kCount; i += 2) {  // rows are multiples of 32 elements
            if (blocks && 4 * step + first + i < sub_blocks) {
                SIMT_UNROLL
                for (int j = i; j < i + 2; ++j) {
                    const SubBlock p =
                        F::at(from, pair + static_cast<unsigned>(j) / 2, static_cast<unsigned>(j) % 2, row_scale);
                    SIMT_UNROLL
                    for (int w = 0; w < 4; ++w) codes[j][w] = p.codes[w];
                    scales[j / kOfScale] = p.scale;
                    offsets[j / kOfScale] = p.offset;
                }
            } else {
                SIMT_UNROLL
                for (int j = i; j < i + 2; ++j) {
                    SIMT_UNROLL
                    for (int w = 0; w < 4; ++w) codes[j][w] = 0;
                    scales[j / kOfScale] = offsets[j / kOfScale] = 0;
                }
            }
        }
    }
    // `first`: of the four sub-blocks of the segment at `to`.
    SIMT_DEVICE void store(char* to, int first) const {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < kCount; ++i)
            *at<UInt4>(static_cast<void*>(to), 16 * (first + i)) =
                UInt4{codes[i][0], codes[i][1], codes[i][2], codes[i][3]};
        SIMT_UNROLL
        for (int i = 0; i < kCount / kOfScale; ++i) {
            *at<float>(static_cast<void*>(to), kSegmentElements + 4 * (first / kOfScale + i)) = scales[i];
            if constexpr (F::kOffsets)
                *at<float>(static_cast<void*>(to), WeightSegment<F>::kOffset + 4 * (first / kOfScale + i)) = offsets[i];
        }
    }
};

// The sum of 16 or 32 codes of a row of activations, times their scale.
template <int kElements>
SIMT_DEVICE float sum_of_codes(const char* segment, int index, float scale) {
    const auto* sums = reinterpret_cast<const int16_t*>(segment + kSegmentSums);
    if constexpr (kElements == 16) return scale * static_cast<float>(sums[index]);
    return scale * static_cast<float>(sums[2 * index] + sums[2 * index + 1]);
}

}  // namespace tessera::cuda_kernels
