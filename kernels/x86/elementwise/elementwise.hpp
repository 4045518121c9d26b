// Ops that process one row at a time, on AVX2.
#pragma once

#include <tessera/kernel.h>

#include <span>

namespace tessera::x86 {

// Lives as long as the library; any thread. The first call may throw.
std::span<const tsr_kernel* const> elementwise_kernels();

}  // namespace tessera::x86
