// Attention over keys and values of their own, for heads that share them or not.
#include "flash.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH(flash_192_128_small, Heads192Small)
TESSERA_FLASH(flash_192_128_large, Heads192Large)
TESSERA_FLASH(flash_128_128_small, Heads128Small)
TESSERA_FLASH(flash_128_128_large, Heads128Large)
TESSERA_FLASH(flash_64_64_small, Heads64Small)
TESSERA_FLASH(flash_64_64_large, Heads64Large)
