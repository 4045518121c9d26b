// Products of many rows with weights of f32, f16 and bf16.
#include "product_kernels.hpp"
#include "kernels/cuda/matmul/tiles_f32.hpp"

SIMT_KERNEL(tessera::cuda_kernels::kTilesThreads, 3) product_f32_64(tessera::cuda_kernels::Tiles a) {
    tessera::cuda_kernels::multiply_tile_f32<TSR_TYPE_F32>(a);
}
TESSERA_PRODUCT_HALF(f16, false)
TESSERA_PRODUCT_HALF(bf16, true)
