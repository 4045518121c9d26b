// Attention over keys and values of their own, for heads that share them or not.
#include "flash_f32.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH_F32(flash_192_128, Heads192F32)
TESSERA_FLASH_F32(flash_128_128, Heads128F32)
TESSERA_FLASH_F32(flash_64_64, Heads64F32)
