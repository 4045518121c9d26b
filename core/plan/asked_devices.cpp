#include "core/plan/asked_devices.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace tessera {
namespace {

const UnusableDevice* find(const std::vector<UnusableDevice>& unusable, std::string_view id) {
    const auto at = std::ranges::find(unusable, id, &UnusableDevice::id);
    return at == unusable.end() ? nullptr : &*at;
}

std::string ids_of(std::span<const tsr_device_info* const> devices) {
    std::string ids;
    for (const tsr_device_info* device : devices) ids += (ids.empty() ? "" : ", ") + std::string(device->id);
    return ids;
}

}  // namespace

PlacementOptions of_usable(PlacementOptions asked, const Hardware& hardware,
                           const std::vector<UnusableDevice>& unusable) {
    for (TensorRule& rule : asked.rules) {
        if (const tsr_device_info* device = hardware.find(rule.device)) rule.device = device->id;
        if (const UnusableDevice* device = find(unusable, rule.device))
            fail(TSR_NOT_FOUND, "the rule '{}={}' names a device that cannot be used: {} ({}): {}", rule.pattern,
                 rule.device, device->id, device->name, device->why);
    }
    const auto gpus = hardware.devices().subspan(1);
    if (asked.tensor_split.empty() || gpus.empty()) return asked;
    if (asked.tensor_split.size() > gpus.size()) {
        fail(TSR_INVALID_ARGUMENT,
             Notice::on(
                 Setting::kTensorSplit, "",
                 fmt::format("there are {} shares, but there {}: {}; give at most one share for each",
                             asked.tensor_split.size(),
                             gpus.size() == 1 ? "is 1 GPU" : fmt::format("are {} GPUs", gpus.size()), ids_of(gpus))));
    }
    asked.tensor_split.resize(gpus.size(), 0);
    std::vector<double> shares;
    for (size_t i = 0; i < gpus.size(); ++i) {
        const UnusableDevice* device = find(unusable, gpus[i]->id);
        if (!device) {
            shares.push_back(asked.tensor_split[i]);
        } else if (asked.tensor_split[i] > 0) {
            fail(TSR_INVALID_ARGUMENT,
                 Notice::on(Setting::kTensorSplit, "",
                            fmt::format("a share is for {} ({}), which cannot be used: {}; give it 0", device->id,
                                        device->name, device->why)));
        }
    }
    asked.tensor_split = std::move(shares);
    return asked;
}

}  // namespace tessera
