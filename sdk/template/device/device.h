/* The two halves of the plugin: a provider of devices, and a kernel for them. */
#pragma once

#include <tessera/kernel.h>

/* What addresses, queues and events of these devices are to kernels: an address is one of host memory, and work is done
 * when the call that puts it on a queue returns. A kernel of another interop is never given them. */
#define EXAMPLE_INTEROP "example-host/1"

extern const tsr_device_provider example_provider;
extern const tsr_kernel example_add;
