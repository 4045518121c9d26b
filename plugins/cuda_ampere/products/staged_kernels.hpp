// TESSERA_PRODUCT_STAGED(name, id): the kernels of products of many rows with weights of a block format on cards with
// tensor cores other than GeForce cards, which have more shared memory. Where a scale serves 16 elements, those of 128
// rows multiply codes times scales as two int8: in those of 64 splitting what is decoded costs what it saves.
#pragma once

#include "tiles_staged.hpp"

#define TESSERA_PRODUCT_STAGED(name, id)                                                                               \
    SIMT_KERNEL(128, 2) product_##name##_staged_64(tessera::cuda_kernels::Tiles a) {                                   \
        static_assert(tessera::cuda_kernels::has_staged_products(TSR_TYPE_##id));                                      \
        SIMT_DYNAMIC_SHARED(memory);                                                                                   \
        tessera::cuda_kernels::multiply_tile_staged<TSR_TYPE_##id, 1>(a, memory);                                      \
    }                                                                                                                  \
    SIMT_KERNEL(256, 1) product_##name##_staged_128(tessera::cuda_kernels::Tiles a) {                                  \
        SIMT_DYNAMIC_SHARED(memory);                                                                                   \
        tessera::cuda_kernels::multiply_tile_staged<TSR_TYPE_##id, 2,                                                  \
                                                    tessera::cuda_kernels::has_split_products(TSR_TYPE_##id)>(a,       \
                                                                                                              memory); \
    }
