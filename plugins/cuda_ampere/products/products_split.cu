// Products of many rows by int8 tensor cores with formats that have a scale for 16 elements, for cards with fewer lanes
// of f32 beside their tensor cores than GeForce cards have: codes times scales as two int8 (tiles_blocks.hpp). In tiles
// of 128 rows: in those of 64 splitting what is decoded costs what it saves.
#include "kernels/cuda/formats/piece_codebook.hpp"
#include "kernels/cuda/formats/piece_k.hpp"
#include "kernels/cuda/formats/piece_levels.hpp"
#include "block_weights_iq2.hpp"
#include "block_weights_levels.hpp"
#include "tiles_blocks.hpp"

#define TESSERA_PRODUCT_SPLIT(name, id)                                          \
    SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 2)                         \
    product_##name##_split_128(tessera::cuda_kernels::Tiles a) {                 \
        static_assert(tessera::cuda_kernels::has_split_products(TSR_TYPE_##id)); \
        tessera::cuda_kernels::multiply_tile_blocks<TSR_TYPE_##id, 2, true>(a);  \
    }

TESSERA_SPLIT_FORMATS(TESSERA_PRODUCT_SPLIT)
