// Products along the columns of a weight, in f32: a lane has 16 neighbouring outputs, which are one sub-block
// (sub_block.hpp) of each row of the weight.
#pragma once

#include "../formats/decode.hpp"
#include "../formats/sub_block_bits.hpp"
#include "../overlap.hpp"

namespace tessera::cuda_kernels {

template <int kType>
inline constexpr bool kPlainColumns = kType == TSR_TYPE_F32 || kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16;

// A sub-block of a row of the weight, as it is kept between its loads and its use.
template <int kType>
class ColumnsSubBlock {
  public:
    // Of a row of n, which may end within it.
    SIMT_DEVICE void load(const char* row, int sub_block, int n) {
        if constexpr (kPlainColumns<kType>) {
            SIMT_UNROLL
            for (int i = 0; i < kSubBlockElements; ++i) {
                const int at = sub_block * kSubBlockElements + i;
                kept_[i] = at < n ? float_element<kType>(row, at) : 0;
            }
        } else {
            kept_ = Format<kType>::load(row, sub_block);
        }
    }
    SIMT_DEVICE void values(float (&of)[kSubBlockElements]) const {
        SIMT_UNROLL
        for (int i = 0; i < kSubBlockElements; ++i) {
            if constexpr (kPlainColumns<kType>) {
                of[i] = kept_[i];
            } else {
                of[i] = value_of(kept_, kept_.codes[i / 4], i % 4);
            }
        }
    }

  private:
    template <bool kPlain, int>
    struct Kept {
        using Type = SubBlock;
    };
    template <int kUnused>
    struct Kept<true, kUnused> {
        using Type = float[kSubBlockElements];
    };
    typename Kept<kPlainColumns<kType>, 0>::Type kept_{};
};

// Rows of the weight that a warp has on their way at once.
template <int kType>
inline constexpr int kColumnsAhead = kPlainColumns<kType> ? 2 : 4;

// Grid: x the outputs by kTransposedOutputs, y the maximum of rows by kTransposedTile or fewer, z the batch. The warps'
// sums are added in the order of the warps.
template <int kType>
SIMT_DEVICE void multiply_columns(const Matmul& a) {
    using namespace simt;
    constexpr int kTile = kTransposedTile, kSums = kTile * kSubBlockElements;
    SIMT_SHARED(float, others, kTransposedWarps * 32 * kSubBlockElements);
    const RowRange range = awaited_rows(a.rows);
    const int sub_block = static_cast<int>(block_index().x) * 32 + static_cast<int>(lane()),
              me = static_cast<int>(warp());
    const int batch = static_cast<int>(block_index().z), first_output = sub_block * kSubBlockElements;
    const auto* weight = at<char>(a.weight, batch * a.weight_batch);
    for (int first = range.begin + static_cast<int>(block_index().y) * kTile; first < range.end;
         first += static_cast<int>(grid_size().y) * kTile) {
        float sums[kSums] = {};
        const float* x[kTile];
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            // Rows past the last are the last one again, and not written.
            x[t] = at<float>(a.x, minimum(first + t, range.end - 1) * a.x_row + batch * a.x_batch);
        }
        if (first_output < a.n) {
            for (int k = me; k < a.k; k += kColumnsAhead<kType> * kTransposedWarps) {
                ColumnsSubBlock<kType> sub_blocks[kColumnsAhead<kType>];
                float factors[kColumnsAhead<kType>][kTile];
                SIMT_UNROLL
                for (int r = 0; r < kColumnsAhead<kType>; ++r) {
                    const int row = k + r * kTransposedWarps;
                    if (r > 0 && row >= a.k) break;
                    sub_blocks[r].load(weight + row * a.weight_row, sub_block, a.n);
                    SIMT_UNROLL
                    for (int t = 0; t < kTile; ++t) factors[r][t] = load_global<float>(x[t] + row);
                }
                SIMT_UNROLL
                for (int r = 0; r < kColumnsAhead<kType>; ++r) {
                    if (r > 0 && k + r * kTransposedWarps >= a.k) break;
                    float values[kSubBlockElements];
                    sub_blocks[r].values(values);
                    SIMT_UNROLL
                    for (int t = 0; t < kTile; ++t) {
                        SIMT_UNROLL
                        for (int i = 0; i < kSubBlockElements; ++i)
                            sums[t * kSubBlockElements + i] =
                                fmaf(values[i], factors[r][t], sums[t * kSubBlockElements + i]);
                    }
                }
            }
        }
        SIMT_UNROLL
        for (int t = 0; t < kTile; ++t) {
            sync_block();  // the sums before have been read
            SIMT_UNROLL
            for (int i = 0; i < kSubBlockElements; ++i)
                others[(me * kSubBlockElements + i) * 32 + static_cast<int>(lane())] = sums[t * kSubBlockElements + i];
            sync_block();
            if (first + t >= range.end) continue;
            // Each thread adds up two outputs of the block, neighbours of those of the next thread.
            for (int i = static_cast<int>(thread_index().x); i < kTransposedOutputs; i += 32 * kTransposedWarps) {
                const int output = static_cast<int>(block_index().x) * kTransposedOutputs + i;
                if (output >= a.n) break;
                float sum = 0;
                for (int w = 0; w < kTransposedWarps; ++w)
                    sum += others[(w * kSubBlockElements + i % kSubBlockElements) * 32 + i / kSubBlockElements];
                at<float>(a.y, (first + t) * a.y_row + batch * a.y_batch)[output] = sum;
            }
        }
    }
}

}  // namespace tessera::cuda_kernels

#define TESSERA_COLUMNS_OF(name, id)                               \
    SIMT_KERNEL(32 * tessera::cuda_kernels::kTransposedWarps, 2)   \
    matmul_transposed_##name(tessera::cuda_kernels::Matmul a) {    \
        tessera::cuda_kernels::multiply_columns<TSR_TYPE_##id>(a); \
    }
