#include "core/plan/placement.hpp"

#include "core/base/error.hpp"
#include "core/base/pattern.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

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

constexpr uint32_t kNowhere = UINT32_MAX;

class Placer {
  public:
    Placer(const Graph& model, std::span<const tsr_device_info* const> devices, const PlacementOptions& asked,
           const Room& room)
        : model_(model), devices_(devices), asked_(asked), room_(room), experts_(find_experts(model)) {
        for (const Node& node : model.nodes()) layers_ = std::max<size_t>(layers_, static_cast<size_t>(node.layer + 1));
        find_layers();
        placement_.storage_device.assign(model.storage_count(), kNowhere);
        placement_.storage_rule.assign(model.storage_count(), -1);
        placement_.layer_device.assign(layers_, 0);
        free_ = room.bytes;
        free_.resize(devices.size());
        apply_rules();
    }

    Placement by_room() {
        keep_experts_on_cpu();
        const bool split = !asked_.tensor_split.empty();
        if (split) {
            split_layers(asked_.tensor_split, 0, layers_);
        } else if (room_.shape == Room::Shape::kStacked) {
            stack_layers();
        } else if (!whole_layers()) {
            spread_layers();
        }
        place_experts();
        return finish();
    }

    Placement as_asked() {
        keep_experts_on_cpu();
        const size_t gpus = devices_.size() - 1;
        if (gpus > 0 && layers_ > 0) {
            const size_t wanted =
                asked_.gpu_layers < 0 ? layers_ : std::min<size_t>(static_cast<size_t>(asked_.gpu_layers), layers_);
            // The entry past the last layer (the output head) follows once all layers are on GPUs.
            const size_t blocks = layers_ - 1;
            std::vector<double> shares = asked_.tensor_split;
            if (shares.empty()) {
                for (size_t i = 1; i <= gpus; ++i)
                    shares.push_back(static_cast<double>(devices_[i]->free_memory_bytes));
            }
            if (wanted > 0)
                split_layers(shares, wanted > blocks ? 0 : blocks - wanted, wanted > blocks ? layers_ : blocks);
        }
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (is_open(id) && experts_[id]) placement_.storage_device[id] = layer_device(id);
        }
        return finish();
    }

  private:
    bool is_weight(StorageId id) const { return model_.storage(id).role == TSR_ROLE_WEIGHT; }
    bool is_open(StorageId id) const { return is_weight(id) && placement_.storage_device[id] == kNowhere; }
    size_t layer_of(StorageId id) const { return static_cast<size_t>(layer_[id]); }
    bool in_layer(StorageId id) const { return layer_[id] >= 0 && layer_of(id) < layers_; }
    uint32_t layer_device(StorageId id) const { return placement_.device_of_layer(layer_[id]); }

    // Where a weight of the file is both the embedding and the output's matrix, the model has two of its name. They lie
    // together, with the output, which reads all of it.
    void find_layers() {
        std::map<std::string_view, int> last;
        for (StorageId id = 1; id < model_.storage_count(); ++id)
            last[model_.storage(id).name] = model_.storage(id).layer;
        layer_.assign(model_.storage_count(), -1);
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            const Storage& storage = model_.storage(id);
            layer_[id] = is_weight(id) && storage.layer < 0 ? last[storage.name] : storage.layer;
        }
    }

    void set(StorageId id, uint32_t device) {
        placement_.storage_device[id] = device;
        take(device, model_.storage(id).bytes);
    }
    void take(uint32_t device, uint64_t bytes) { free_[device] -= std::min(free_[device], bytes); }

    void apply_rules() {
        const std::vector<Rule> rules = compile(asked_.rules, devices_);
        std::vector<bool> used(rules.size(), false), matched(rules.size(), false);
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (!is_weight(id)) continue;
            bool placed = false;
            for (size_t i = 0; i < rules.size(); ++i) {
                // Past the rule that counts, only whether a rule matches anything is of interest.
                if ((placed && matched[i]) || !rules[i].pattern.found_in(model_.storage(id).name)) continue;
                matched[i] = true;
                if (placed) continue;
                set(id, rules[i].device);
                placement_.storage_rule[id] = static_cast<int32_t>(i);
                used[i] = placed = true;
            }
        }
        for (size_t i = 0; i < rules.size(); ++i) {
            if (used[i]) continue;
            placement_.notes.push_back(fmt::format(
                "the rule '{}={}' {}", asked_.rules[i].pattern, asked_.rules[i].device,
                matched[i] ? "changes nothing: all its matches are taken by earlier rules" : "matches no tensor"));
        }
    }

    void keep_experts_on_cpu() {
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (!is_open(id) || !experts_[id]) continue;
            if (asked_.cpu_expert_layers < 0 || model_.storage(id).layer < asked_.cpu_expert_layers) set(id, 0);
        }
    }

    // Bytes of the layers' parts that are not placed yet: what every token reads, with the cache, and routed experts.
    struct LayerBytes {
        uint64_t always = 0, experts = 0;
    };
    std::vector<LayerBytes> layer_bytes() const {
        std::vector<LayerBytes> bytes(layers_);
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (!is_open(id) || !in_layer(id)) continue;
            (experts_[id] ? bytes[layer_of(id)].experts : bytes[layer_of(id)].always) += model_.storage(id).bytes;
        }
        for (size_t layer = 0; layer < layers_; ++layer) bytes[layer].always += cache_of(layer);
        return bytes;
    }
    uint64_t cache_of(size_t layer) const { return layer < room_.layer_cache.size() ? room_.layer_cache[layer] : 0; }

    // Devices are filled with whole layers, one after another, the embedding beside the first one if there is room.
    // False, with nothing placed, if not all layers find room.
    bool whole_layers() {
        std::vector<LayerBytes> bytes = layer_bytes();
        const StorageId embedding = embedding_beside_layers();
        std::optional<std::vector<uint32_t>> found;
        if (embedding) {
            bytes[0].always += model_.storage(embedding).bytes;
            found = assign_whole(bytes);
            bytes[0].always -= model_.storage(embedding).bytes;
            if (found) set(embedding, found->front());
        }
        if (!found) found = assign_whole(bytes);
        if (!found) return false;
        for (size_t layer = 0; layer < layers_; ++layer) put_layer(layer, (*found)[layer], bytes[layer].always);
        return true;
    }

    // 0: it is placed already, is the output's matrix, or the CPU has a part of the layers in any case.
    StorageId embedding_beside_layers() const {
        const StorageId embedding = find_embedding(model_);
        if (embedding == 0 || layers_ == 0 || !is_open(embedding) || in_layer(embedding) || asked_.caches_on_cpu)
            return 0;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (is_weight(id) && in_layer(id) && placement_.storage_device[id] == 0) return 0;
        }
        return embedding;
    }

    // The device of each layer, in Room::order.
    std::optional<std::vector<uint32_t>> assign_whole(const std::vector<LayerBytes>& bytes) const {
        std::optional<std::vector<uint32_t>> found = assign_within(bytes, std::numeric_limits<double>::infinity());
        if (!found || room_.shape != Room::Shape::kBalanced) return found;
        // The least time that can be kept to by all devices, by bisection.
        double below = 0, enough = longest(*found);
        for (int i = 0; i < 40 && below < 0.9999 * enough; ++i) {
            const double limit = (below + enough) / 2;
            if (auto better = assign_within(bytes, limit)) {
                found = std::move(better);
                enough = longest(*found);
            } else {
                below = limit;
            }
        }
        return found;
    }

    double seconds_of(uint32_t device, size_t layer) const {
        return room_.layer_seconds.empty() ? 0 : room_.layer_seconds[device][layer];
    }

    double longest(const std::vector<uint32_t>& device_of_layer) const {
        std::vector<double> seconds(devices_.size());
        for (size_t layer = 0; layer < layers_; ++layer)
            seconds[device_of_layer[layer]] += seconds_of(device_of_layer[layer], layer);
        return std::ranges::max(seconds);
    }

    std::optional<std::vector<uint32_t>> assign_within(const std::vector<LayerBytes>& bytes, double limit) const {
        std::vector<uint32_t> found(layers_, 0);
        std::vector<uint64_t> left = free_;
        size_t at = 0;
        double spent = 0;
        for (size_t layer = 0; layer < layers_; ++layer) {
            const uint64_t wanted = bytes[layer].always + bytes[layer].experts;
            while (at < room_.order.size() &&
                   (left[room_.order[at]] < wanted || spent + seconds_of(room_.order[at], layer) > limit)) {
                ++at;
                spent = 0;
            }
            if (at == room_.order.size()) return std::nullopt;
            left[room_.order[at]] -= wanted;
            spent += seconds_of(room_.order[at], layer);
            found[layer] = room_.order[at];
        }
        return found;
    }

    // Each device gets so many neighbouring layers that all devices have room for the same share of their experts.
    void spread_layers() {
        const std::vector<LayerBytes> bytes = layer_bytes();
        double room = 0, always = 0, experts = 0;
        for (const uint32_t device : room_.order) room += static_cast<double>(free_[device]);
        for (const LayerBytes& layer : bytes) {
            always += static_cast<double>(layer.always);
            experts += static_cast<double>(layer.experts);
        }
        const double share = experts > 0 ? std::clamp((room - always) / experts, 0.0, 1.0) : 0;
        const std::vector<uint64_t> whole = free_;
        size_t at = 0;
        double filled = 0;
        // From the last layer down, so that a model that does not fit keeps its first layers on the CPU.
        for (size_t layer = layers_; layer-- > 0;) {
            const double wanted =
                static_cast<double>(bytes[layer].always) + share * static_cast<double>(bytes[layer].experts);
            const auto full = [&] {
                const uint32_t device = room_.order[at];
                return free_[device] < bytes[layer].always ||
                       (at + 1 < room_.order.size() && filled + wanted / 2 > static_cast<double>(whole[device]));
            };
            while (at < room_.order.size() && full()) {
                ++at;
                filled = 0;
            }
            if (at == room_.order.size()) return;
            filled += wanted;
            put_layer(layer, room_.order[at], bytes[layer].always);
        }
    }

    void stack_layers() {
        const std::vector<LayerBytes> bytes = layer_bytes();
        size_t at = 0;
        for (size_t layer = layers_; layer-- > 0;) {
            while (at < room_.order.size() && free_[room_.order[at]] < bytes[layer].always) ++at;
            if (at == room_.order.size()) return;
            put_layer(layer, room_.order[at], bytes[layer].always);
        }
    }

    // Layers [first, last) go to the devices but the CPU in order, each one's part in proportion to its share of the
    // bytes.
    void split_layers(std::vector<double> shares, size_t first, size_t last) {
        shares.resize(devices_.size() - 1, 0.0);
        const std::vector<LayerBytes> bytes = layer_bytes();
        const auto size = [&](size_t layer) {
            return static_cast<double>(bytes[layer].always) + static_cast<double>(bytes[layer].experts);
        };
        const double total_share = std::accumulate(shares.begin(), shares.end(), 0.0);
        double total = 0;
        for (size_t layer = first; layer < last; ++layer) total += size(layer);
        if (total_share <= 0 || total <= 0) return;
        double done = 0, limit = shares[0] / total_share * total;
        size_t gpu = 0;
        for (size_t layer = first; layer < last; ++layer) {
            // A layer belongs to the device whose share contains the middle of the layer.
            const double middle = done + size(layer) / 2;
            while (gpu + 1 < shares.size() && middle > limit) limit += shares[++gpu] / total_share * total;
            put_layer(layer, static_cast<uint32_t>(gpu + 1), bytes[layer].always);
            done += size(layer);
        }
    }

    // All but the routed experts.
    void put_layer(size_t layer, uint32_t device, uint64_t always) {
        placement_.layer_device[layer] = device;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (is_open(id) && !experts_[id] && in_layer(id) && layer_of(id) == layer)
                placement_.storage_device[id] = device;
        }
        take(device, always);
    }

    // Whole layers' stacks on the layer's own device first, then parts of stacks there, then both on other devices in
    // the order in which those are filled. The last layers go first: --n-cpu-moe keeps the first ones on the CPU.
    void place_experts() {
        std::vector<std::vector<StorageId>> stacks(layers_);
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (is_open(id) && experts_[id] && in_layer(id)) stacks[layer_of(id)].push_back(id);
        }
        for (const bool own : {true, false}) {
            for (const bool parts : {false, true}) {
                for (size_t layer = layers_; layer-- > 0;) place_stack(stacks[layer], layer, own, parts);
            }
        }
    }

    void place_stack(std::vector<StorageId>& stack, size_t layer, bool own, bool parts) {
        if (stack.empty()) return;
        const uint32_t home = placement_.layer_device[layer];
        if (own && home == 0) return;
        const std::vector<uint32_t> here{home};
        for (const uint32_t device : own ? here : room_.order) {
            if (parts) {
                std::erase_if(stack, [&](StorageId id) {
                    if (free_[device] < model_.storage(id).bytes) return false;
                    set(id, device);
                    return true;
                });
            } else {
                uint64_t bytes = 0;
                for (const StorageId id : stack) bytes += model_.storage(id).bytes;
                if (free_[device] < bytes) continue;
                for (const StorageId id : stack) set(id, device);
                stack.clear();
            }
            if (stack.empty()) return;
        }
    }

    // The remaining weights go to the CPU; nodes without a matrix follow those matrices of their layer that every token
    // reads.
    Placement finish() {
        std::vector<std::vector<uint64_t>> bytes(layers_, std::vector<uint64_t>(devices_.size()));
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (!is_weight(id)) continue;
            if (is_open(id)) placement_.storage_device[id] = experts_[id] || !in_layer(id) ? 0 : layer_device(id);
            const Storage& storage = model_.storage(id);
            if (!experts_[id] && in_layer(id) && storage.bytes > row_bytes(id))
                bytes[layer_of(id)][placement_.storage_device[id]] += storage.bytes;
        }
        for (size_t layer = 0; layer < layers_; ++layer) {
            const auto most = std::ranges::max_element(bytes[layer]);
            if (most != bytes[layer].end() && *most > 0)
                placement_.layer_device[layer] = static_cast<uint32_t>(most - bytes[layer].begin());
        }
        return std::move(placement_);
    }

    // Of the storage's first row: a vector has no more.
    uint64_t row_bytes(StorageId id) const {
        const Storage& storage = model_.storage(id);
        return storage.row_bytes ? storage.row_bytes : storage.bytes;
    }

    const Graph& model_;
    std::span<const tsr_device_info* const> devices_;
    const PlacementOptions& asked_;
    const Room& room_;
    std::vector<bool> experts_;
    std::vector<int> layer_;  // of each storage; -1: before the first
    size_t layers_ = 0;
    std::vector<uint64_t> free_;
    Placement placement_;
};

}  // namespace

bool Placement::layers_on_devices(const Graph& model) const {
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        const Storage& storage = model.storage(id);
        if (storage.role == TSR_ROLE_WEIGHT && storage.layer >= 0 && storage_device[id] == 0) return false;
    }
    return true;
}

std::vector<bool> find_experts(const Graph& model) {
    std::vector<bool> experts(model.storage_count(), false);
    for (const Node& node : model.nodes()) {
        const bool network = node.op == "moe_ffn";  // of which biases lie with their matrices
        if (!network && node.op != "matmul_id") continue;
        for (const Value value : node.inputs) {
            const tsr_tensor& t = model.tensor(value);
            if (value && t.role == TSR_ROLE_WEIGHT && (network || t.rank == 3)) experts[model.storage_of(value)] = true;
        }
    }
    return experts;
}

StorageId find_embedding(const Graph& model) {
    for (const Node& node : model.nodes()) {
        if (node.layer >= 0 || node.op != TSR_OP_GET_ROWS) continue;
        if (const Value table = node.inputs.front(); model.tensor(table).role == TSR_ROLE_WEIGHT)
            return model.storage_of(table);
    }
    return 0;
}

Placement place(const Graph& model, std::span<const tsr_device_info* const> devices, const PlacementOptions& asked,
                const Room& room) {
    return Placer(model, devices, asked, room).by_room();
}

Placement place_as_asked(const Graph& model, std::span<const tsr_device_info* const> devices,
                         const PlacementOptions& asked, const Room& room) {
    return Placer(model, devices, asked, room).as_asked();
}

}  // namespace tessera
