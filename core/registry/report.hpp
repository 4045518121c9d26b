// What `tessera devices` and `tessera plugins` print.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"

#include <string>

namespace tessera {

// Every device, and the plugins that own it or compute on it; or why none does.
std::string devices_report(const Hardware& hardware, const Registry& registry);

// Every plugin, chosen, rejected or off. With `why` also where it lies, what it needs and brings, the reason of each
// rejection, the folders searched, and conflicts between plugins.
std::string plugins_report(const Registry& registry, bool why);

}  // namespace tessera
