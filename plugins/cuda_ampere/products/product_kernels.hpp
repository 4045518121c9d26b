// TESSERA_PRODUCT(name, id): the kernels of products of many rows with weights of a block format.
#pragma once

#include "block_weights_entries.hpp"
#include "block_weights_iq1_m.hpp"
#include "block_weights_iq3_ks.hpp"
#include "tiles_blocks.hpp"
#include "tiles_half.hpp"
#include "tiles_mma.hpp"

namespace tessera::cuda_kernels {

template <int kType, int kWarpsOfRows>
SIMT_DEVICE void multiply_tile_int8(const Tiles& a) {
    if constexpr (Format<kType>::kBlockElements == kBlockElements) {
        multiply_tile_blocks<kType, kWarpsOfRows>(a);
    } else {
        multiply_tile_mma<kType, kWarpsOfRows>(a);
    }
}

// Blocks of threads that a multiprocessor has registers for. Those with a scale for 16 elements, and of larger tiles,
// keep more in registers.
template <int kType, int kWarpsOfRows>
constexpr int blocks_at_once() {
    return tile_outputs(static_cast<tsr_type>(kType), 64 * kWarpsOfRows) * kWarpsOfRows == 128 &&
                   Format<kType>::kScaleElements == 32
               ? 3
               : 2;
}

}  // namespace tessera::cuda_kernels

#define TESSERA_PRODUCT(name, id)                                                                                  \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, (tessera::cuda_kernels::blocks_at_once<TSR_TYPE_##id, 1>())) \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {                                                          \
        tessera::cuda_kernels::multiply_tile_int8<TSR_TYPE_##id, 1>(a);                                            \
    }                                                                                                              \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, (tessera::cuda_kernels::blocks_at_once<TSR_TYPE_##id, 2>())) \
    product_##name##_128(tessera::cuda_kernels::Tiles a) {                                                         \
        tessera::cuda_kernels::multiply_tile_int8<TSR_TYPE_##id, 2>(a);                                            \
    }

// The same with weights of f16 (brain: false) or bf16.
#define TESSERA_PRODUCT_HALF(name, brain)                    \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)     \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {    \
        tessera::cuda_kernels::multiply_tile_half<brain>(a); \
    }
