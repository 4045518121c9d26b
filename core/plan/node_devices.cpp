#include "core/plan/node_devices.hpp"

#include "core/base/error.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/predict.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace tessera {
namespace {

// Storages of the node's matrices.
std::vector<StorageId> matrices_of(const Graph& graph, const Node& node) {
    std::vector<StorageId> matrices;
    for (const Value value : node.inputs) {
        if (value == 0 || graph.tensor(value).rank < 2) continue;
        const StorageId id = graph.storage_of(value);
        if (graph.storage(id).role == TSR_ROLE_WEIGHT) matrices.push_back(id);
    }
    return matrices;
}

}  // namespace

bool touches_cache(const Graph& graph, const Node& node) {
    const auto is_cache = [&](Value value) {
        return value && graph.storage(graph.storage_of(value)).role == TSR_ROLE_CACHE;
    };
    return std::ranges::any_of(node.inputs, is_cache) || std::ranges::any_of(node.outputs, is_cache);
}

NodeDevices::NodeDevices(const Graph& model, const Placement& placement, const Registry& registry,
                         std::span<const tsr_device_info* const> devices, const ScheduleOptions& options)
    : placement_(placement), registry_(registry), devices_(devices), options_(options) {
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        if (storage.role != TSR_ROLE_WEIGHT) continue;
        weight_device_[storage.name] = placement.storage_device[id];
        if (placement.storage_rule[id] >= 0) weight_rule_[storage.name] = placement.storage_rule[id];
    }
}

std::optional<DeviceIndex> NodeDevices::weight_device(const std::string& name) const {
    const auto at = weight_device_.find(name);
    return at == weight_device_.end() ? std::nullopt : std::optional(at->second);
}

DeviceIndex NodeDevices::device_of(const Graph& graph, const Node& node, DeviceIndex otherwise) const {
    if (node.stage == TSR_STAGE_INIT) return 0;
    DeviceIndex device = otherwise;
    uint64_t largest = 0;
    for (const StorageId id : matrices_of(graph, node)) {
        const Storage& storage = graph.storage(id);
        const auto at = weight_device(storage.name);
        if (at && storage.bytes > largest) {
            largest = storage.bytes;
            device = *at;
        }
    }
    return device;
}

bool NodeDevices::matrices_apart(const Graph& graph, const Node& node) const {
    std::optional<DeviceIndex> first;
    for (const StorageId id : matrices_of(graph, node)) {
        const auto at = weight_device(graph.storage(id).name);
        if (!at) continue;
        if (first && *first != *at) return true;
        first = at;
    }
    return false;
}

CacheDevices NodeDevices::cache_devices(const Graph& graph, std::optional<DeviceIndex> inherited, bool moving) const {
    std::map<int, std::vector<const Node*>> groups;
    for (const Node& node : graph.nodes()) {
        if (touches_cache(graph, node)) groups[node.layer].push_back(&node);
    }
    CacheDevices found;
    for (const auto& [layer, nodes] : groups) {
        const DeviceIndex usual = inherited.value_or(placement_.device_of_layer(layer));
        DeviceIndex& device = found[layer];
        device = usual;
        if (options_.placement.caches_on_cpu) {
            device = 0;
            continue;
        }
        for (const Node* node : nodes) {
            if (const DeviceIndex other = device_of(graph, *node, usual); other != usual) device = other;
        }
        if (!moving) continue;
        const auto seconds = [&](DeviceIndex at) {
            double sum = 0;
            for (const Node* node : nodes) {
                const NodeView view(graph, *node);
                sum += find_kernels(view.abi(), *devices_[at], registry_).seconds();
                if (at != usual) sum += crossing_seconds(graph, *node, usual, at);
            }
            return sum;
        };
        double best = seconds(device);
        if (best < std::numeric_limits<double>::infinity()) continue;
        for (DeviceIndex other = 0; other < devices_.size(); ++other) {
            if (const double there = seconds(other); there < best) {
                best = there;
                device = other;
            }
        }
    }
    return found;
}

std::string NodeDevices::rule_that_holds(const Graph& graph, const Node& node) const {
    for (const StorageId id : matrices_of(graph, node)) {
        const std::string& name = graph.storage(id).name;
        const auto at = weight_rule_.find(name);
        if (at == weight_rule_.end()) continue;
        const TensorRule& rule = options_.placement.rules[static_cast<size_t>(at->second)];
        return fmt::format("the rule '{}={}' places {} there", rule.pattern, rule.device, name);
    }
    return {};
}

double NodeDevices::crossing_seconds(const Graph& graph, const Node& node, DeviceIndex from, DeviceIndex to) const {
    double bytes = 0;
    for (const auto* list : {&node.inputs, &node.outputs}) {
        for (const Value value : *list) {
            if (!value) continue;
            const Storage& storage = graph.storage(graph.storage_of(value));
            if (storage.role != TSR_ROLE_ACTIVATION) continue;
            // A row of generation, and the share of a prompt's step that estimates are weighed by.
            bytes += static_cast<double>(storage.row_bytes) + static_cast<double>(storage.bytes) * kPromptShare;
        }
    }
    double seconds = 2 * kCopySeconds;  // of what it reads, and of what it writes
    for (const DeviceIndex end : {from, to}) {
        if (end && devices_[end]->link_bandwidth > 0) seconds += bytes / devices_[end]->link_bandwidth;
    }
    return seconds;
}

}  // namespace tessera
