// Attention of both plugins over heads of 64, for attention_window_test.cpp.
#if SIMT_ARCH >= 800
#include "plugins/cuda_ampere/attention/flash.hpp"
using namespace tessera::cuda_kernels;
TESSERA_FLASH_KERNEL(flash_few, Heads64Small, half_t, kDirect)
TESSERA_FLASH_KERNEL(flash_many, Heads64Large, half_t, kDirect)
#else
#include "plugins/cuda_legacy/attention/flash_f32.hpp"
using namespace tessera::cuda_kernels;
TESSERA_FLASH_F32_KERNEL(flash_many, Heads64F32, kHalves)
#endif
