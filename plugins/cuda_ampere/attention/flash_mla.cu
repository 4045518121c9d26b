// Attention over one latent row: keys of 576, values their first 512 elements; all heads share them.
#include "flash.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH(flash_mla_small, MlaSmall)
TESSERA_FLASH(flash_mla_large, MlaLarge)
