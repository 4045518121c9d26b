#include "core/plan/placement_rules.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace tessera {
namespace {

std::string escaped(std::string_view text) {
    std::string pattern;
    for (const char c : text) {
        if (std::string_view(".[]{}()*+?^$|\\/").find(c) != std::string_view::npos) pattern += '\\';
        pattern += c;
    }
    return pattern;
}

std::string join(const std::vector<std::string>& parts) {
    const std::string text = joined(parts, "|");
    return parts.size() > 1 ? "(" + text + ")" : text;
}

// The name of a layer's weight around the layer's number: "blk.", ".attn_q.weight".
struct Name {
    std::string before, after;
};

bool split_name(const std::string& name, int layer, Name& parts) {
    const std::string number = "." + std::to_string(layer) + ".";
    const size_t at = name.find(number);
    if (layer < 0 || at == std::string::npos) return false;
    parts = {name.substr(0, at + 1), name.substr(at + number.size() - 1)};
    return true;
}

using Layers = std::vector<int>;

std::string layers_pattern(const std::string& before, const Layers& layers) {
    std::vector<std::string> numbers;
    for (const int layer : layers) numbers.push_back(std::to_string(layer));
    return escaped(before) + join(numbers);
}

}  // namespace

std::vector<std::string> placement_rules(const Graph& model, const Placement& placement,
                                         std::span<const tsr_device_info* const> devices) {
    std::map<std::pair<std::string, int>, std::map<uint32_t, size_t>> votes;  // of weights of a layer, by device
    std::map<uint32_t, std::vector<std::string>> alone;                       // names without a layer's number
    bool only_cpu = true;
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        if (storage.role != TSR_ROLE_WEIGHT) continue;
        only_cpu &= placement.storage_device[id] == 0;
        Name name;
        if (split_name(storage.name, storage.layer, name)) {
            ++votes[{name.before, storage.layer}][placement.storage_device[id]];
        } else {
            alone[placement.storage_device[id]].push_back(escaped(storage.name));
        }
    }
    if (only_cpu) return {};
    const auto usual = [&](const Name& name, int layer) {
        const auto& found = votes.at({name.before, layer});
        return std::ranges::max_element(found, {}, [](const auto& vote) { return vote.second; })->first;
    };

    // Weights that lie elsewhere than most of their layer, which of them and of which layers.
    std::map<std::tuple<uint32_t, std::string, std::string>, Layers> apart;  // device, before, after
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        Name name;
        if (storage.role != TSR_ROLE_WEIGHT || !split_name(storage.name, storage.layer, name)) continue;
        if (placement.storage_device[id] != usual(name, storage.layer))
            apart[{placement.storage_device[id], name.before, name.after}].push_back(storage.layer);
    }
    std::map<std::tuple<uint32_t, std::string, Layers>, std::vector<std::string>> merged;
    for (auto& [key, layers] : apart) {
        std::ranges::sort(layers);
        merged[{std::get<0>(key), std::get<1>(key), layers}].push_back(escaped(std::get<2>(key)));
    }
    std::vector<std::string> rules;
    for (const auto& [key, names] : merged) {
        const auto& [device, before, layers] = key;
        rules.push_back(fmt::format("^{}{}$={}", layers_pattern(before, layers), join(names), devices[device]->id));
    }
    std::map<std::pair<uint32_t, std::string>, Layers> together;
    for (const auto& [key, found] : votes) {
        together[{usual({key.first, ""}, key.second), key.first}].push_back(key.second);
    }
    for (auto& [key, layers] : together) {
        std::ranges::sort(layers);
        rules.push_back(fmt::format("^{}\\.={}", layers_pattern(key.second, layers), devices[key.first]->id));
    }
    for (const auto& [device, names] : alone) rules.push_back(fmt::format("^{}$={}", join(names), devices[device]->id));
    return rules;
}

}  // namespace tessera
