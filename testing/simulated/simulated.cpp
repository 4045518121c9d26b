// The simulated plugin: GPUs that are not there, of any compute capability from 6.0 on and any memory. It keeps the ABI
// honest (a host pointer given to a device, or a device's address read by the host, is caught) and stands in for GPUs
// where none can be had. README.md says what it claims.
#include "control.hpp"
#include "device.hpp"
#include "estimate.hpp"
#include "kernels.hpp"
#include "layouts.hpp"

#include <tessera/extensions/estimate_constants.h>
#include <tessera/plugin.h>

#include <string_view>

namespace {

using namespace tessera::simulated;

const void* get_extension(const tsr_plugin*, const char* tag) {
    if (!tag) return nullptr;
    if (std::string_view(tag) == TSR_SIMULATED_FAILURES) return failure_table();
    return std::string_view(tag) == TSR_ESTIMATE_CONSTANTS ? estimate_constants() : nullptr;
}

constexpr const tsr_device_provider* kProviders[] = {&kProvider};

tsr_plugin make_plugin() {
    tsr_plugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.abi_major = TSR_ABI_MAJOR;
    plugin.abi_minor = TSR_ABI_MINOR;
    plugin.name = "simulated";
    plugin.version = "0.1.0";
    plugin.providers = kProviders;
    plugin.provider_count = 1;
    plugin.kernels = kernel_list(plugin.kernel_count);
    plugin.layouts = layout_list(plugin.layout_count);
    plugin.get_extension = get_extension;
    return plugin;
}

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    set_host(host);
    try {
        static const tsr_plugin plugin = make_plugin();
        return &plugin;
    } catch (...) {
        return nullptr;
    }
}
