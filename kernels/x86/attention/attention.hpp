// Attention over a paged cache, and writing to it, on AVX2.
#pragma once

#include <tessera/device.h>
#include <tessera/kernel.h>

#include <span>

namespace tessera::x86 {

// flash_attention, tiled_attention, cache_write. Lives as long as the library; any thread.
std::span<const tsr_kernel* const> attention_kernels() noexcept;

// Lanes of the vectors with which attention in int16 is computed on a device.
int attention_lanes(const tsr_device_info* device) noexcept;
// Whether caches in q8_0 can be attended to in bytes there.
bool attends_in_bytes(const tsr_device_info* device) noexcept;

}  // namespace tessera::x86
