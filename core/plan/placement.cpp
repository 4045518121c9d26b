#include "core/plan/placement.hpp"

#include "core/base/error.hpp"
#include "core/base/pattern.hpp"

#include <algorithm>
#include <numeric>

namespace tessera {
namespace {

struct Rule {
    Pattern pattern;
    uint32_t device;
};

std::vector<Rule> compile(std::span<const TensorRule> rules, std::span<const tsr_device_info* const> devices) {
    std::vector<Rule> compiled;
    for (const TensorRule& rule : rules) {
        const auto at = std::ranges::find_if(devices, [&](const tsr_device_info* d) { return rule.device == d->id; });
        if (at == devices.end()) {
            std::string known;
            for (const tsr_device_info* device : devices)
                known += fmt::format("{}{}", known.empty() ? "" : ", ", device->id);
            fail(TSR_NOT_FOUND, "the rule '{}={}' names a device that is not here; there are: {}", rule.pattern,
                 rule.device, known);
        }
        try {
            compiled.push_back({Pattern(rule.pattern), static_cast<uint32_t>(at - devices.begin())});
        } catch (const Error& error) {
            fail(error.code(), "the rule '{}={}': {}", rule.pattern, rule.device, error.what());
        }
    }
    return compiled;
}

// Storages of weights with one matrix an expert.
std::vector<bool> find_experts(const Graph& model) {
    std::vector<bool> experts(model.storage_count(), false);
    for (const Node& node : model.nodes()) {
        if (node.op != "moe_ffn" && node.op != "matmul_id") continue;
        for (const Value value : node.inputs) {
            const tsr_tensor& t = model.tensor(value);
            if (value && t.role == TSR_ROLE_WEIGHT && t.rank == 3) experts[model.storage_of(value)] = true;
        }
    }
    return experts;
}

// Layers [first, count) go to the GPUs in order, each GPU's part in proportion to its share of the bytes.
void split_layers(std::vector<uint32_t>& layer_device, size_t first, const std::vector<uint64_t>& layer_bytes,
                  const std::vector<double>& shares) {
    const double total_share = std::accumulate(shares.begin(), shares.end(), 0.0);
    const double total = std::accumulate(layer_bytes.begin() + static_cast<ptrdiff_t>(first), layer_bytes.end(), 0.0);
    if (total_share <= 0 || total <= 0) return;
    double done = 0, limit = 0;
    size_t gpu = 0;
    limit = shares[0] / total_share * total;
    for (size_t layer = first; layer < layer_device.size(); ++layer) {
        // A layer belongs to the GPU in whose part its middle lies.
        const double middle = done + static_cast<double>(layer_bytes[layer]) / 2;
        while (gpu + 1 < shares.size() && middle > limit) limit += shares[++gpu] / total_share * total;
        layer_device[layer] = static_cast<uint32_t>(gpu + 1);
        done += static_cast<double>(layer_bytes[layer]);
    }
}

}  // namespace

Placement place(const Graph& model, std::span<const tsr_device_info* const> devices, const ScheduleOptions& options,
                uint64_t cache_bytes_layer) {
    const PlacementOptions& asked = options.placement;
    int last_layer = -1;
    for (const Node& node : model.nodes()) last_layer = std::max(last_layer, node.layer);
    const size_t layers = static_cast<size_t>(last_layer + 1);

    Placement placement;
    placement.storage_device.assign(model.storage_count(), 0);
    placement.layer_device.assign(layers, 0);
    const std::vector<bool> experts = find_experts(model);
    const auto expert_on_cpu = [&](int layer) {
        return asked.cpu_expert_layers < 0 || layer < asked.cpu_expert_layers;
    };

    const size_t gpus = devices.size() - 1;
    if (gpus > 0 && layers > 0) {
        const size_t wanted =
            asked.gpu_layers < 0 ? layers : std::min<size_t>(static_cast<size_t>(asked.gpu_layers), layers);
        // The entry past the last layer (the output head) follows once all layers are on GPUs.
        const size_t blocks = layers - 1;
        const size_t first = wanted > blocks ? 0 : blocks - wanted;
        std::vector<uint64_t> bytes(layers, 0);
        for (StorageId id = 1; id < model.storage_count(); ++id) {
            const Storage& storage = model.storage(id);
            if (storage.role != TSR_ROLE_WEIGHT || storage.layer < 0) continue;
            if (experts[id] && expert_on_cpu(storage.layer)) continue;
            bytes[static_cast<size_t>(storage.layer)] += storage.bytes;
        }
        for (size_t layer = 0; layer < blocks; ++layer) bytes[layer] += cache_bytes_layer;
        std::vector<double> shares = asked.tensor_split;
        shares.resize(gpus, 0.0);
        if (asked.tensor_split.empty()) {
            for (size_t i = 0; i < gpus; ++i) shares[i] = static_cast<double>(devices[i + 1]->free_memory_bytes);
        }
        if (wanted > 0) {
            split_layers(placement.layer_device, first, bytes, shares);
            if (wanted <= blocks) placement.layer_device.back() = 0;
        }
    }

    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        if (storage.role != TSR_ROLE_WEIGHT) continue;
        placement.storage_device[id] = placement.device_of_layer(storage.layer);
        if (experts[id] && expert_on_cpu(storage.layer)) placement.storage_device[id] = 0;
    }
    const std::vector<Rule> rules = compile(asked.rules, devices);
    std::vector<bool> used(rules.size(), false), matched(rules.size(), false);
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        if (storage.role != TSR_ROLE_WEIGHT) continue;
        bool placed = false;
        for (size_t i = 0; i < rules.size(); ++i) {
            // Past the rule that counts, only whether a rule matches anything is of interest.
            if ((placed && matched[i]) || !rules[i].pattern.found_in(storage.name)) continue;
            matched[i] = true;
            if (placed) continue;
            placement.storage_device[id] = rules[i].device;
            used[i] = placed = true;
        }
    }
    for (size_t i = 0; i < rules.size(); ++i) {
        if (used[i]) continue;
        placement.notes.push_back(fmt::format(
            "the rule '{}={}' {}", asked.rules[i].pattern, asked.rules[i].device,
            matched[i] ? "changes nothing: all its matches are taken by earlier rules" : "matches no tensor"));
    }
    return placement;
}

}  // namespace tessera
