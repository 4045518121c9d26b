/* The template's devices with a kernel that changes how its thread rounds (LOST_ROUNDING), or that loses them: in every
 * case (LOST_ALWAYS), in that of one element (LOST_ONCE), or so that they cannot be opened again (LOST_FOR_GOOD: the
 * file that TSR_PLANTED_LOST names is there then). */
#define _GNU_SOURCE
#include "sdk/template/device/device.h"

#include <tessera/helpers.h>
#include <tessera/plugin.h>

#include <immintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static tsr_kernel add;
static tsr_device_provider provider;

static const tsr_status* lose(const tsr_kernel* self, void* state, const tsr_launch* launch) {
    const tsr_node* node = state;
#if defined LOST_ONCE
    if (node->inputs[0]->dims[0] != 1 || launch->data[2] == launch->data[0] || node->inputs[1]->rank == 1)
        return example_add.enqueue(self, state, launch);
#elif defined LOST_ROUNDING
    (void)node;
    _mm_setcsr(_mm_getcsr() | 0x2000);
    return example_add.enqueue(self, state, launch);
#elif defined LOST_FOR_GOOD
    FILE* file = fopen(getenv("TSR_PLANTED_LOST"), "w");
    if (file) fclose(file);
#endif
    (void)node;
    return tsr_fail(TSR_DEVICE_LOST, "it is on fire");
}

static const tsr_status* open_unless_lost(const tsr_device_provider* self, const tsr_device_info* info,
                                          tsr_device** device) {
    const char* const file = getenv("TSR_PLANTED_LOST");
    if (file && access(file, F_OK) == 0) return tsr_fail(TSR_DEVICE_LOST, "it has burnt down");
    return example_provider.open(self, info, device);
}

static const tsr_device_provider* const providers[] = {&provider};
static const tsr_kernel* const kernels[] = {&add};
static const tsr_plugin plugin = {
    .struct_size = sizeof(tsr_plugin),
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "lost_device",
    .version = "1.0.0",
    .providers = providers,
    .kernels = kernels,
    .provider_count = 1,
    .kernel_count = 1,
};

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    (void)host;
    provider = example_provider;
    provider.open = open_unless_lost;
    add = example_add;
    add.enqueue = lose;
    return &plugin;
}
