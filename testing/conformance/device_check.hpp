// A device through its whole interface, and kernels that run on it.
#pragma once

#include "kernel_check.hpp"

#include <memory>
#include <span>

namespace tessera::conformance {

struct DeviceCheck {
    const char* name;
    // Throws. The devices were opened for it alone; `peer` is another one of the provider.
    void (*run)(tsr_device& device, tsr_device& peer);
    bool (*applies)(const tsr_device& device);  // nullptr: always
};
std::span<const DeviceCheck> device_checks();

// peer: of the second device; may be `info`, which is then opened twice.
Verdict check_device(const tsr_device_provider& provider, const tsr_device_info& info, const tsr_device_info& peer,
                     const DeviceCheck& check);

// Why a device that the provider matches cannot be opened; empty if it can, or is not matched.
std::string why_not_opened(const tsr_device_provider& provider, const tsr_device_info& info) noexcept;

// Opens the device until what it returns is released; nullptr if it cannot be opened.
std::shared_ptr<const void> keep_open(const tsr_device_provider& provider, const tsr_device_info& info) noexcept;

// What enqueue_pack and enqueue_unpack of a layout do on a device, against pack and unpack.
Verdict check_device_layout(const tsr_device_provider& provider, const tsr_device_info& info, const tsr_layout& layout);

// As check_kernel, for a kernel that is enqueued; with a recording, too, where the device makes them.
Verdict check_device_kernel(const Setting& setting, const tsr_device_provider& provider, const tsr_device_info& info,
                            const tsr_kernel& kernel, const Case& of);

}  // namespace tessera::conformance
