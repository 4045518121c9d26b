// Attention over one latent row: keys of 576, values their first 512 elements; all heads share them.
#include "flash.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH(mla_small_f16, MlaSmall, half_t, true)
TESSERA_FLASH(mla_small_bf16, MlaSmall, bfloat16_t, true)
TESSERA_FLASH(mla_large_f16, MlaLarge, half_t, true)
TESSERA_FLASH(mla_large_bf16, MlaLarge, bfloat16_t, true)
