// The same as flash_mla.cu for cards with 160 KB of shared memory a block.
#include "flash.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH(mla_small_wide_f16, MlaSmallWide, half_t, true)
TESSERA_FLASH(mla_small_wide_bf16, MlaSmallWide, bfloat16_t, true)
TESSERA_FLASH(mla_large_wide_f16, MlaLargeWide, half_t, true)
TESSERA_FLASH(mla_large_wide_bf16, MlaLargeWide, bfloat16_t, true)
