/* The table of a plugin that owns devices and brings a kernel for them. */
#include "device.h"

#include <tessera/plugin.h>

#include <stddef.h>

static const tsr_device_provider* const providers[] = {&example_provider};
static const tsr_kernel* const kernels[] = {&example_add};

static const tsr_plugin plugin = {
    .struct_size = sizeof(tsr_plugin),
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example_device",
    .version = "1.0.0",
    .providers = providers,
    .kernels = kernels,
    .provider_count = 1,
    .kernel_count = 1,
};

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return host->abi_major == TSR_ABI_MAJOR ? &plugin : NULL;
}
