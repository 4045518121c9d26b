// Products of many rows with weights of f16 and bf16, on cards other than GeForce cards.
#include "tiles_half_staged.hpp"

#define TESSERA_PRODUCT_HALF_STAGED(name, brain)                                      \
    SIMT_KERNEL(128, 3) product_##name##_staged_64(tessera::cuda_kernels::Tiles a) {  \
        SIMT_DYNAMIC_SHARED(memory);                                                  \
        tessera::cuda_kernels::multiply_tile_half_staged<brain, 1>(a, memory);        \
    }                                                                                 \
    SIMT_KERNEL(256, 2) product_##name##_staged_128(tessera::cuda_kernels::Tiles a) { \
        SIMT_DYNAMIC_SHARED(memory);                                                  \
        tessera::cuda_kernels::multiply_tile_half_staged<brain, 2>(a, memory);        \
    }

TESSERA_PRODUCT_HALF_STAGED(f16, false)
TESSERA_PRODUCT_HALF_STAGED(bf16, true)
