// What a plugin says that its estimates rest on (tessera/extensions/estimate_constants.h).
#pragma once

#include "core/registry/registry.hpp"

#include <tessera/device.h>

#include <string>
#include <vector>

namespace tessera {

struct EstimateConstant {
    std::string name, unit;  // printable
    double value;            // finite
    bool assumed;            // nobody has measured it on such a device
};

// Those of estimates for a device; none where the plugin does not say. What it says is not trusted: what is malformed
// is left out. Throws Error as call_plugin does. [any thread]
std::vector<EstimateConstant> estimate_constants(const PluginRecord& plugin, const tsr_device_info& device);

}  // namespace tessera
