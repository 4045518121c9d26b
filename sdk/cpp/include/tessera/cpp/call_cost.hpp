// What a node of a CPU costs besides its work. The host adds it to the estimate of each kernel, so that estimates of
// different plugins can be compared; kernels that pass further barriers count those themselves.
#pragma once

#include <tessera/device.h>

namespace tessera::sdk {

// Seconds of one barrier of the device's threads. NULL: a device of one thread.
inline double barrier_seconds(const tsr_device_info* device) noexcept {
    const unsigned threads = device && device->threads > 0 ? device->threads : 1;
    // Every worker writes to one counter, whose cache line goes from core to core, and over a longer distance between
    // NUMA nodes.
    const bool one_node = !device || device->numa_nodes < 2;
    return 0.4e-6 + threads * (one_node ? 25e-9 : 60e-9);
}

// Seconds of the call of a kernel on all workers and of the barrier after it.
inline double call_seconds(const tsr_device_info* device) noexcept {
    return 1.2e-6 + barrier_seconds(device);
}

}  // namespace tessera::sdk
