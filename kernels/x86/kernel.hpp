// What all kernels of the plugins for x86 have in common.
#pragma once

#include <tessera/kernel.h>

#include <cstdint>

namespace tessera::x86 {

// The entry of `op` in a plugin's table, named after it: tables.cpp adds the plugin's suffix.
constexpr tsr_kernel cpu_kernel(const char* op, decltype(tsr_kernel::plan) plan, decltype(tsr_kernel::prepare) prepare,
                                decltype(tsr_kernel::release) release, decltype(tsr_kernel::run) run,
                                const void* context = nullptr) noexcept {
    return {
        sizeof(tsr_kernel), 1, nullptr, context, op, op, "cpu", nullptr, 0, 0, plan, prepare, release, run, nullptr};
}

// Workers that a kernel has to be ready for.
inline uint32_t slots_of(const tsr_device_info* device) noexcept {
    return device && device->threads > 0 ? device->threads : 1;
}

}  // namespace tessera::x86
