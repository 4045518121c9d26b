// Kernels of kind "simulated": the reference algorithms, behind the op sets that the CUDA plugins have.
#pragma once

#include <tessera/kernel.h>

#include <cstdint>

namespace tessera::simulated {

// `count` is set. The list lives until the process ends.
const tsr_kernel* const* kernel_list(uint32_t& count);

}  // namespace tessera::simulated
