// A device through its whole interface, and kernels that run on it.
#pragma once

#include "kernel_check.hpp"

#include <span>

namespace tessera::conformance {

struct DeviceCheck {
    const char* name;
    void (*run)(tsr_device& device);            // throws; the device was opened for it alone
    bool (*applies)(const tsr_device& device);  // nullptr: always
};
std::span<const DeviceCheck> device_checks();

Verdict check_device(const Setting& setting, const tsr_device_provider& provider, const tsr_device_info& info,
                     const DeviceCheck& check);

// As check_kernel, for a kernel that is enqueued; with a recording, too, where the device makes them.
Verdict check_device_kernel(const Setting& setting, const tsr_device_provider& provider, const tsr_device_info& info,
                            const tsr_kernel& kernel, const Case& of);

}  // namespace tessera::conformance
