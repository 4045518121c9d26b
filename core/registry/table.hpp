// Checks of a plugin's table before anything in it is used.
#pragma once

#include "core/registry/manifest.hpp"

#include <tessera/extensions/architecture.h>
#include <tessera/plugin.h>

#include <string>

namespace tessera {

// What is wrong with the table on its own: ABI, sizes, missing functions and names, an operator of a name that is the
// core's. Sizes are compared with those of the minor version that the plugin was built for (tessera/sizes.h), not with
// this host's. Empty if nothing is.
std::string table_fault(const tsr_plugin& table);

// What is wrong with a device that a provider opened: missing functions, incomplete groups of optional ones. Empty if
// nothing is.
std::string device_fault(const tsr_device& device);
// What is wrong with an address that it allocated: NULL, not aligned, past the end of the address space.
std::string address_fault(const tsr_device& device, const void* address, uint64_t bytes);

// Why an entry for devices is left out: it was built for another TSR_DEVICE_ABI. Empty if it was not, and for entries
// that are not for devices. The rest of the plugin is used.
std::string device_abi_fault(const tsr_device_provider& provider);
std::string device_abi_fault(const tsr_kernel& kernel);
std::string device_abi_fault(const tsr_layout& layout);

// What is wrong with the extension: sizes, missing functions and names, a name twice. Empty if nothing is.
std::string architectures_fault(const tsr_architectures& list);

// Where the table and the manifest contradict each other; empty if they do not. The table is without fault.
std::string contradiction(const Manifest& manifest, const tsr_plugin& table);

}  // namespace tessera
