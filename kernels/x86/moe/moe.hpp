// Feed-forward networks: gated_ffn, moe_ffn, matmul_id.
#pragma once

#include <tessera/kernel.h>

#include <span>

namespace tessera::x86 {

// Live as long as the library; any thread.
std::span<const tsr_kernel* const> ffn_kernels() noexcept;
std::span<const tsr_kernel* const> matmul_id_kernels() noexcept;

}  // namespace tessera::x86
