// What `tessera devices` and `tessera plugins` print.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"

#include <map>
#include <string>

namespace tessera {

// Every device, and the plugins that own it or compute on it; or why none does. `memory`: by device id, a line on what
// its driver reports of its memory.
std::string devices_report(const Hardware& hardware, const Registry& registry,
                           const std::map<std::string, std::string>& memory = {});

// Every plugin, chosen, rejected or off. With `why` also its path, what it needs and provides, the reason of each
// rejection, the folders searched, and conflicts between plugins.
std::string plugins_report(const Registry& registry, bool why);

}  // namespace tessera
