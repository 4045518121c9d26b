// Products of many rows by int8 tensor cores with formats that have a scale for 16 elements, for cards with fewer lanes
// of f32 beside their tensor cores than GeForce cards have: codes times scales as two int8 (tiles_blocks.hpp). In tiles
// of 128 rows: in those of 64 splitting what is decoded costs what it saves.
#include "kernels/cuda/formats/piece_codebook.hpp"
#include "kernels/cuda/formats/piece_k.hpp"
#include "kernels/cuda/formats/piece_levels.hpp"
#include "block_weights_iq2.hpp"
#include "block_weights_levels.hpp"
#include "tiles_blocks.hpp"

#define TESSERA_PRODUCT_SPLIT(name, type)                               \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 2)                \
    product_##name##_split_128(tessera::cuda_kernels::Tiles a) {        \
        static_assert(tessera::cuda_kernels::has_split_products(type)); \
        tessera::cuda_kernels::multiply_tile_blocks<type, 2, true>(a);  \
    }

TESSERA_PRODUCT_SPLIT(q6_K, TSR_TYPE_Q6_K)
TESSERA_PRODUCT_SPLIT(iq2_xs, TSR_TYPE_IQ2_XS)
TESSERA_PRODUCT_SPLIT(iq2_s, TSR_TYPE_IQ2_S)
TESSERA_PRODUCT_SPLIT(iq2_k, TSR_TYPE_IQ2_K)
TESSERA_PRODUCT_SPLIT(iq3_k, TSR_TYPE_IQ3_K)
TESSERA_PRODUCT_SPLIT(iq4_k, TSR_TYPE_IQ4_K)
TESSERA_PRODUCT_SPLIT(iq5_k, TSR_TYPE_IQ5_K)
TESSERA_PRODUCT_SPLIT(iq6_k, TSR_TYPE_IQ6_K)
