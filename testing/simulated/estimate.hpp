// What kernels written for a card would take on it: by its memory, its multiprocessors and their clock.
#pragma once

#include <tessera/cpu/check.hpp>

namespace tessera::simulated {

void write_estimate(const cpu::Work& work, const tsr_device_info& device, tsr_kernel_plan& plan) noexcept;

// The extension TSR_ESTIMATE_CONSTANTS.
const void* estimate_constants() noexcept;

}  // namespace tessera::simulated
