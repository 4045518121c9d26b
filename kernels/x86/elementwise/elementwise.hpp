// Ops that process one row at a time, on AVX2.
#pragma once

#include <tessera/kernel.h>

#include <span>

namespace tessera::x86 {

// Lives as long as the library; any thread.
std::span<const tsr_kernel* const> elementwise_kernels() noexcept;

}  // namespace tessera::x86
