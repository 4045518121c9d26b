// Attention of many heads over one latent row, whose first elements are the values.
#include "flash_f32.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH_F32(flash_mla_small, MlaSmallF32)
// Rows of f32 need more registers than there are: they have the small tile alone.
TESSERA_FLASH_F32_KERNEL(flash_mla_large_halves, MlaLargeF32, kHalves)
TESSERA_FLASH_F32_KERNEL(flash_mla_large_blocks, MlaLargeF32, kBlocks)
