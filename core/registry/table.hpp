// Checks of a plugin's table before anything in it is used.
#pragma once

#include "core/registry/manifest.hpp"

#include <tessera/plugin.h>

#include <string>

namespace tessera {

// What is wrong with the table by itself: ABI, sizes, missing functions and names. Empty if nothing is.
std::string table_fault(const tsr_plugin& table);

// Where the table and the manifest contradict each other; empty if they do not. The table is without fault.
std::string contradiction(const Manifest& manifest, const tsr_plugin& table);

}  // namespace tessera
