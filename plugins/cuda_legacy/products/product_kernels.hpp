// TESSERA_PRODUCT(name, id): the kernel of products of many rows with weights of a block format: by dp4a where there
// is one, else in f32.
#pragma once

#include "kernels/cuda/matmul/tiles_f32.hpp"

#if SIMT_ARCH >= 610
#include "tiles_dp4a.hpp"
#define TESSERA_PRODUCT(name, id)                                    \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)             \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {            \
        tessera::cuda_kernels::multiply_tile_dp4a<TSR_TYPE_##id>(a); \
    }
#else
#define TESSERA_PRODUCT(name, id)                                   \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)            \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {           \
        tessera::cuda_kernels::multiply_tile_f32<TSR_TYPE_##id>(a); \
    }
#endif

// The same with weights of f16 (brain: false) or bf16.
#define TESSERA_PRODUCT_HALF(name, brain)                                                  \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3)                                   \
    product_##name##_64(tessera::cuda_kernels::Tiles a) {                                  \
        tessera::cuda_kernels::multiply_tile_f32<brain ? TSR_TYPE_BF16 : TSR_TYPE_F16>(a); \
    }
