#include "core/registry/estimate_constants.hpp"

#include "core/base/plugin_call.hpp"
#include "core/base/text.hpp"
#include "core/registry/extension.hpp"

#include <tessera/extensions/estimate_constants.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tessera {
namespace {

constexpr uint32_t kMostConstants = 32;  // of a plugin and a device
constexpr size_t kMostText = 64;

}  // namespace

std::vector<EstimateConstant> estimate_constants(const PluginRecord& plugin, const tsr_device_info& device) {
    const tsr_plugin& table = *plugin.table;
    const auto* extension = static_cast<const tsr_estimate_constants*>(find_extension(table, TSR_ESTIMATE_CONSTANTS));
    if (!extension || extension->struct_size < sizeof *extension || !extension->list) return {};
    std::array<tsr_estimate_constant, kMostConstants> listed{};
    const uint32_t count = call_plugin({table.name, "list of estimate constants"}, [&] {
        return extension->list(extension, &device, listed.data(), kMostConstants);
    });
    std::vector<EstimateConstant> constants;
    for (uint32_t i = 0; i < std::min(count, kMostConstants); ++i) {
        const tsr_estimate_constant& constant = listed[i];
        if (!constant.name || !std::isfinite(constant.value)) continue;
        constants.push_back({printable(constant.name, kMostText),
                             printable(constant.unit ? constant.unit : "", kMostText), constant.value,
                             constant.measured == nullptr});
    }
    return constants;
}

}  // namespace tessera
