// The memory of devices as their drivers report it.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"

#include <map>
#include <string>

namespace tessera {

// By device id, a line on the memory of each device that a plugin owns, for people: what its driver reports, or why the
// device cannot be opened. Opens the devices for the time of the call; devices of a rig are left out.
std::map<std::string, std::string> driver_memory(const Hardware& hardware, const Registry& registry);

}  // namespace tessera
