// The same as flash_mla.cu for cards with 160 KB of shared memory a block.
#include "flash.hpp"

using namespace tessera::cuda_kernels;

TESSERA_FLASH(flash_mla_small_wide, MlaSmallWide)
TESSERA_FLASH(flash_mla_large_wide, MlaLargeWide)
TESSERA_FLASH_DIRECT(flash_mla_large_twice, MlaLargeTwice)
