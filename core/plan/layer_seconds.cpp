#include "core/plan/layer_seconds.hpp"

#include "core/plan/predict.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {
namespace {

double first_seen(const std::vector<std::vector<double>>& seen, size_t layer) {
    for (const std::vector<double>& layers : seen) {
        if (layers[layer] > 0) return layers[layer];
    }
    return 0;
}

}  // namespace

bool alike(const tsr_device_info& a, const tsr_device_info& b) {
    return std::string_view(a.kind) == b.kind && std::string_view(a.name) == b.name &&
           a.compute_capability == b.compute_capability && a.memory_bandwidth == b.memory_bandwidth;
}

LayerSeconds::LayerSeconds(std::span<const tsr_device_info* const> devices, size_t layers)
    : devices_(devices), seen_(devices.size(), std::vector<double>(layers)) {}

void LayerSeconds::observe(const Plan& plan) {
    const size_t layers = seen_.front().size();
    std::vector<std::vector<double>> found(devices_.size(), std::vector<double>(layers));
    std::vector<size_t> parts(layers);  // devices that compute something of it
    for (const PlannedNode& planned : plan.nodes) {
        const int layer = plan.graph.nodes()[planned.node].layer;
        if (layer < 0 || static_cast<size_t>(layer) >= layers) continue;
        double& seconds = found[planned.device][static_cast<size_t>(layer)];
        if (seconds == 0) ++parts[static_cast<size_t>(layer)];
        seconds += prompt_seconds(plan, planned);
    }
    for (DeviceIndex device = 0; device < devices_.size(); ++device) {
        for (size_t layer = 0; layer < layers; ++layer) {
            if (parts[layer] != 1 || found[device][layer] <= 0) continue;
            for (DeviceIndex other = 0; other < devices_.size(); ++other) {
                if (alike(*devices_[device], *devices_[other])) seen_[other][layer] = found[device][layer];
            }
        }
    }
}

std::vector<std::vector<double>> LayerSeconds::all() const {
    const size_t layers = seen_.front().size();
    std::vector<double> usual(layers);
    double sum = 0;
    size_t known = 0;
    for (size_t layer = 0; layer < layers; ++layer) {
        usual[layer] = first_seen(seen_, layer);
        sum += usual[layer];
        known += usual[layer] > 0;
    }
    for (double& seconds : usual) {
        if (seconds == 0) seconds = known ? sum / static_cast<double>(known) : 1;
    }
    double bandwidth = 0;  // of the first device that has computed a layer
    for (DeviceIndex device = 0; device < devices_.size() && bandwidth == 0; ++device) {
        if (std::ranges::any_of(seen_[device], [](double seconds) { return seconds > 0; }))
            bandwidth = devices_[device]->memory_bandwidth;
    }
    std::vector<std::vector<double>> all = seen_;
    for (DeviceIndex device = 0; device < devices_.size(); ++device) {
        double own = 0, others = 0;
        for (size_t layer = 0; layer < layers; ++layer) {
            if (seen_[device][layer] == 0) continue;
            own += seen_[device][layer];
            others += usual[layer];
        }
        const double there = devices_[device]->memory_bandwidth;
        const double ratio = others > 0 ? own / others : bandwidth > 0 && there > 0 ? bandwidth / there : 1;
        for (size_t layer = 0; layer < layers; ++layer) {
            if (all[device][layer] == 0) all[device][layer] = usual[layer] * ratio;
        }
    }
    return all;
}

}  // namespace tessera
