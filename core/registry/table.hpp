// Checks of a plugin's table before anything in it is used.
#pragma once

#include "core/registry/manifest.hpp"

#include <tessera/plugin.h>

#include <string>

namespace tessera {

// What is wrong with the table by itself: ABI, sizes, missing functions and names. Empty if nothing is.
std::string table_fault(const tsr_plugin& table);

// What is wrong with a device that a provider opened: functions that are missing, optional ones without those that go
// with them. Empty if nothing is.
std::string device_fault(const tsr_device& device);
// What is wrong with an address that it allocated: NULL, not aligned, past the end of the address space.
std::string address_fault(const tsr_device& device, const void* address, uint64_t bytes);

// Where the table and the manifest contradict each other; empty if they do not. The table is without fault.
std::string contradiction(const Manifest& manifest, const tsr_plugin& table);

}  // namespace tessera
