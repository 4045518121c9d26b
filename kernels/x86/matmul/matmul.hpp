// matmul, matmul_group.
#pragma once

#include <tessera/kernel.h>

#include <span>

namespace tessera::x86 {

// Lives as long as the library; any thread.
std::span<const tsr_kernel* const> matmul_kernels() noexcept;

}  // namespace tessera::x86
