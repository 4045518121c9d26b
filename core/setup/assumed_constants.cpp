#include "core/setup/assumed_constants.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/hardware/hardware.hpp"
#include "core/plan/predict.hpp"
#include "core/plan/streaming.hpp"
#include "core/registry/estimate_constants.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace tessera {
namespace {

bool has_transfers(const Plan& plan) {
    return std::ranges::any_of(plan.step.actions, [](const Action& action) { return action.maximum_bytes > 0; });
}

std::string list_text(const std::vector<AssumedConstant>& constants) {
    std::string text;
    for (const AssumedConstant& constant : constants) {
        text += fmt::format("{}{} {:.3g}{}{}", text.empty() ? "" : ", ", constant.name, constant.value,
                            constant.unit.empty() ? "" : " ", constant.unit);
    }
    return text;
}

}  // namespace

std::vector<AssumedConstant> assumed_constants(const PlanReport& report) {
    const Plan& plan = report.planned.plan;
    std::vector<AssumedConstant> all;
    std::set<std::pair<const PluginRecord*, DeviceIndex>> asked;
    for (const PlannedNode& node : plan.nodes) {
        if (node.device == 0) continue;
        const PluginRecord& plugin = report.registry.owner(*node.kernel);
        if (!asked.emplace(&plugin, node.device).second) continue;
        const tsr_device_info& device = *plan.devices[node.device];
        for (EstimateConstant& constant : estimate_constants(plugin, device)) {
            if (!constant.assumed) continue;
            all.push_back(
                {plugin.manifest.name, device.id, std::move(constant.name), std::move(constant.unit), constant.value});
        }
    }
    if (has_transfers(plan)) all.push_back({"core", "", "a copy between devices", "us", kCopySeconds * 1e6});
    if (!plan.streamed.empty())
        all.push_back({"core", "", "a part of streamed experts", "us", kStreamedWaveSeconds * 1e6});
    return all;
}

std::string assumed_line(const PlanReport& report) {
    // Devices with the same constants are named together.
    std::vector<std::pair<std::string, std::vector<std::string>>> devices;
    std::map<std::string, std::vector<AssumedConstant>> by_device;
    std::vector<std::string> order;
    for (AssumedConstant& constant : assumed_constants(report)) {
        auto& list = by_device[constant.device];
        if (list.empty()) order.push_back(constant.device);
        list.push_back(std::move(constant));
    }
    for (const std::string& device : order) {
        std::string text = list_text(by_device[device]);
        const auto same = std::ranges::find(devices, text, &std::pair<std::string, std::vector<std::string>>::first);
        if (same != devices.end()) {
            same->second.push_back(device);
        } else {
            devices.push_back({std::move(text), {device}});
        }
    }
    std::string line;
    for (const auto& [text, names] : devices)
        line += (line.empty() ? "" : "; ") +
                (names.front().empty() ? "" : fmt::format("{}: ", fmt::join(names, ", "))) + text;
    return line.empty() ? line : "assumed, not measured on such a device: " + line;
}

}  // namespace tessera
