// TESSERA_PRODUCT(name, type): the kernels of products of many rows with weights of a block format. Those with a scale
// for 16 elements keep more in registers.
#pragma once

#include "tiles_half.hpp"
#include "tiles_mma.hpp"

#define TESSERA_PRODUCT(name, type)                                                \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads,                              \
                tessera::cuda_kernels::Format<type>::kScaleElements == 32 ? 3 : 2) \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {                          \
        tessera::cuda_kernels::multiply_tile_mma<type, 1>(a);                      \
    }                                                                              \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads,                              \
                tessera::cuda_kernels::Format<type>::kScaleElements == 32 ? 3 : 2) \
    product_##name##_128(tessera::cuda_kernels::Tiles a) {                         \
        tessera::cuda_kernels::multiply_tile_mma<type, 2>(a);                      \
    }

// The same with weights of f16 (brain: false) or bf16.
#define TESSERA_PRODUCT_HALF(name, brain)                    \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)     \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {    \
        tessera::cuda_kernels::multiply_tile_half<brain>(a); \
    }
