// Attention over a paged cache, and writing to it, on AVX2.
#pragma once

#include <tessera/kernel.h>

#include <span>

namespace tessera::cpu_x86 {

// flash_attention, tiled_attention, cache_write. Lives as long as the library; any thread.
std::span<const tsr_kernel* const> attention_kernels() noexcept;

}  // namespace tessera::cpu_x86
