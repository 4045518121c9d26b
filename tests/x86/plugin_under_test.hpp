// The plugin whose kernels a test program runs, and the processor flags that it is given.
//
// TSR_TEST_PLUGIN names it (cpu_avx2 if not set); it is looked for among the plugins of the build and the fixtures of
// these tests, and mapped through the registry; where the processor lacks its flags the program says so and ends.
// TSR_TEST_CPU_FLAGS replaces the processor's flags as kernels see them.
#pragma once

#include <tessera/device.h>
#include <tessera/kernel.h>

#include <span>
#include <string>
#include <string_view>

namespace tessera::tests {

std::string_view plugin_name();
// Throws std::runtime_error if there is none.
const tsr_kernel& kernel_of(std::string_view op);
// The kernel of cpu_avx2, to compare with.
const tsr_kernel& kernel_of_avx2(std::string_view op);
const tsr_layout& layout_of(tsr_type type);
std::span<const tsr_layout* const> layouts_of_plugin();

// A "cpu" with `workers` threads and those flags. Its pointers live as long as the process.
tsr_device_info device_of(uint32_t workers);

}  // namespace tessera::tests
