// Which placement to take: those that could be best are planned in full, and the fastest by estimate that fits is kept.
#include "core/plan/fit.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/plan/assemble.hpp"
#include "core/plan/layouts.hpp"
#include "core/plan/lower.hpp"
#include "core/plan/placement.hpp"
#include "core/plan/predict.hpp"
#include "core/plan/streaming.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

// The CPU and every device that a plugin owns.
std::vector<const tsr_device_info*> usable_devices(const Registry& registry, const Hardware& hardware,
                                                   std::vector<std::string>& notes) {
    std::vector<const tsr_device_info*> devices;
    for (const tsr_device_info* device : hardware.devices()) {
        std::string why;
        if (devices.empty() || registry.find_provider(*device, &why)) {
            devices.push_back(device);
        } else {
            notes.push_back(fmt::format("{} ({}) is not used: {}", device->id, device->name,
                                        why.empty() ? "no plugin owns devices of its kind" : why));
        }
    }
    return devices;
}

// What devices are asked for beyond what they have, from `first` on.
uint64_t excess_bytes(const Plan& plan, DeviceIndex first) {
    uint64_t excess = 0;
    for (DeviceIndex device = first; device < plan.devices.size(); ++device) {
        const uint64_t needed = plan.memory[device].allocated(), usable = usable_bytes(plan.devices, device);
        excess += needed - std::min(needed, usable);
    }
    return excess;
}

struct Candidate {
    Placement placement;
    Plan plan;
    uint64_t excess = 0;         // of all devices
    uint64_t device_excess = 0;  // of all but the CPU
    double seconds = 0;

    // What does not fit at all should at least fill the devices and no more, so that the CPU alone is to blame.
    bool better_than(const Candidate& other) const {
        // A gain that estimates cannot tell from nothing is not worth another arrangement.
        constexpr double kWorthwhile = 0.995;
        if (device_excess != other.device_excess) return device_excess < other.device_excess;
        if (excess != other.excess) return excess < other.excess;
        return seconds < kWorthwhile * other.seconds;
    }
};

class Fitter {
  public:
    Fitter(const Graph& model, const Registry& registry, std::vector<const tsr_device_info*> devices,
           const ScheduleOptions& options)
        : model_(model), registry_(registry), devices_(std::move(devices)), options_(options) {
        for (const Node& node : model.nodes()) layers_ = std::max<size_t>(layers_, static_cast<size_t>(node.layer + 1));
        for (DeviceIndex device = 1; device < devices_.size(); ++device) by_speed_.push_back(device);
        std::ranges::stable_sort(by_speed_, [&](DeviceIndex a, DeviceIndex b) {
            return devices_[a]->memory_bandwidth > devices_[b]->memory_bandwidth;
        });
    }

    Candidate run() {
        if (devices_.size() == 1) return planned(place(model_, devices_, options_.placement, room_of({})));
        Candidate found = search();
        return options_.placement.first_fit ? std::move(found) : with_embedding(std::move(found));
    }

    // Bytes of routed experts that lie on the CPU, and of all.
    uint64_t experts_on_cpu(const Placement& placement, uint64_t* all = nullptr) const {
        const std::vector<bool> experts = find_experts(model_);
        uint64_t bytes = 0;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (!experts[id]) continue;
            if (all) *all += model_.storage(id).bytes;
            if (placement.storage_device[id] == 0) bytes += model_.storage(id).bytes;
        }
        return bytes;
    }

    const std::vector<const tsr_device_info*>& devices() const { return devices_; }

  private:
    Candidate search() {
        const PlacementOptions& asked = options_.placement;
        if (asked.gpu_layers >= 0) {
            Room room = room_of({});
            Candidate first = planned(place_as_asked(model_, devices_, asked, room));
            room.layer_cache = cache_of(first.plan);  // the split counts it
            return planned(place_as_asked(model_, devices_, asked, room));
        }
        std::optional<Candidate> best;
        for (const size_t count : device_counts()) {
            for (const Room::Shape shape : {Room::Shape::kSpread, Room::Shape::kStacked}) {
                if (count == 0 && shape == Room::Shape::kStacked) continue;
                Candidate candidate =
                    fill({by_speed_.begin(), by_speed_.begin() + static_cast<ptrdiff_t>(count)}, shape);
                if (cannot_fit_) {
                    if (asked.first_fit || count == by_speed_.size()) return candidate;
                    return fill(by_speed_, Room::Shape::kSpread);
                }
                const bool all_on_devices = count > 0 && experts_on_cpu(candidate.placement) == 0;
                if (!best || candidate.better_than(*best)) best = std::move(candidate);
                if (best->excess == 0 && (asked.first_fit || !asked.tensor_split.empty())) return std::move(*best);
                // The fastest devices that hold everything: neither another shape nor slower ones can gain.
                if (all_on_devices && best->excess == 0) return std::move(*best);
            }
        }
        return std::move(*best);
    }

    // How many of the devices to try, the fastest first: as few as hold everything, all, those of each speed, and none
    // where the host's memory is not much slower than theirs.
    std::vector<size_t> device_counts() const {
        std::vector<size_t> counts{by_speed_.size()};
        if (!options_.placement.tensor_split.empty()) return counts;
        uint64_t wanted = 0, room = 0;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (model_.storage(id).role == TSR_ROLE_WEIGHT && model_.storage(id).layer >= 0)
                wanted += model_.storage(id).bytes;
        }
        size_t enough = 0;
        for (; enough < by_speed_.size() && room < wanted; ++enough) room += usable_bytes(devices_, by_speed_[enough]);
        if (room >= wanted) {
            counts.push_back(enough);
            counts.push_back(enough + 1);  // if cache and scratch do not fit as well
        }
        for (size_t i = 1; i < by_speed_.size(); ++i) {
            if (devices_[by_speed_[i]]->memory_bandwidth < 0.9 * devices_[by_speed_[i - 1]]->memory_bandwidth)
                counts.push_back(i);
        }
        if (devices_[0]->memory_bandwidth > 0.5 * devices_[by_speed_.front()]->memory_bandwidth) counts.push_back(0);
        std::ranges::sort(counts);
        counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
        std::erase_if(counts, [&](size_t count) { return count > by_speed_.size(); });
        return counts;
    }

    Room room_of(const std::vector<DeviceIndex>& order) const {
        Room room;
        room.bytes.assign(devices_.size(), 0);
        room.layer_cache = layer_cache_;
        room.order.assign(order.begin(), order.end());
        for (const DeviceIndex device : order) room.bytes[device] = usable_bytes(devices_, device);
        return room;
    }

    // Whether no placement fits: weights for which the host has to allocate memory in this plan, or in any if it maps
    // none, take as much wherever they lie.
    bool exceeds_all_memory(const Plan& plan) const {
        std::vector<bool> counted(plan.graph.storage_count(), false);
        uint64_t bytes = 0, usable = 0;
        for (const Instance& it : plan.instances) {
            const bool may_be_mapped = it.mapped || (it.device != 0 && options_.map_weights);
            if (it.storage == 0 || may_be_mapped || it.loading || counted[it.storage]) continue;
            const Storage& storage = plan.graph.storage(it.storage);
            if (storage.role != TSR_ROLE_WEIGHT || storage.derived) continue;
            counted[it.storage] = true;
            bytes += storage.bytes;
        }
        for (DeviceIndex device = 0; device < devices_.size(); ++device) usable += usable_bytes(devices_, device);
        return bytes > usable;
    }

    // Fills the devices' memory. The bytes of activations, workspaces and layouts are known only from the plan, so the
    // room for weights and the plan are computed in alternation until they agree.
    Candidate fill(const std::vector<DeviceIndex>& order, Room::Shape shape) {
        constexpr int kRounds = 5;
        Room room = room_of(order);
        room.shape = shape;
        std::optional<Candidate> best;
        for (int round = 0; round < kRounds; ++round) {
            Candidate candidate = planned(place(model_, devices_, options_.placement, room));
            layer_cache_ = room.layer_cache = cache_of(candidate.plan);
            bool changed = false;
            for (const DeviceIndex device : order) {
                const uint64_t usable = usable_bytes(devices_, device);
                const uint64_t beside =
                    candidate.plan.memory[device].allocated() -
                    std::min(counted(candidate.placement, room, device), candidate.plan.memory[device].allocated());
                const uint64_t now = usable - std::min(usable, beside);
                changed |= now != room.bytes[device];
                room.bytes[device] = now;
            }
            const bool fits = candidate.excess == 0;
            cannot_fit_ = cannot_fit_ || (round == 0 && !fits && exceeds_all_memory(candidate.plan));
            // Then it is enough that the devices are not to blame.
            const bool is_enough = cannot_fit_ && (candidate.device_excess == 0 || options_.placement.first_fit);
            if (!best || candidate.better_than(*best)) best = std::move(candidate);
            if (is_enough) break;
            if (!changed || (fits && options_.placement.first_fit)) break;
        }
        return std::move(*best);
    }

    // Rows of the embedding are looked up on the CPU, which costs no memory of a card. But where cards compute all
    // else, that copies twice to the first one, and a step that the host takes part in holds up the next: there the
    // embedding goes to the card of the first layer, if it has room.
    Candidate with_embedding(Candidate found) const {
        const StorageId embedding = find_embedding(model_);
        const DeviceIndex first = found.placement.device_of_layer(0);
        if (embedding == 0 || first == 0 || found.device_excess > 0 || found.placement.storage_device[embedding] != 0 ||
            found.placement.storage_rule[embedding] >= 0)
            return found;
        for (const PlannedNode& node : found.plan.nodes) {
            if (node.device == 0 && found.plan.graph.nodes()[node.node].layer >= 0) return found;
        }
        Placement placement = found.placement;
        placement.storage_device[embedding] = first;
        Candidate moved = planned(std::move(placement));
        const auto on_host = [](const PlannedNode& node) { return node.device == 0; };
        const bool gains =
            moved.device_excess == 0 && moved.excess <= found.excess && std::ranges::none_of(moved.plan.nodes, on_host);
        return gains ? std::move(moved) : std::move(found);
    }

    // What the placement thinks that it puts on the device.
    uint64_t counted(const Placement& placement, const Room& room, DeviceIndex device) const {
        uint64_t bytes = 0;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (model_.storage(id).role == TSR_ROLE_WEIGHT && placement.storage_device[id] == device)
                bytes += model_.storage(id).bytes;
        }
        for (size_t layer = 0; layer < room.layer_cache.size(); ++layer) {
            if (placement.layer_device[layer] == device) bytes += room.layer_cache[layer];
        }
        return bytes;
    }

    std::vector<uint64_t> cache_of(const Plan& plan) const {
        std::vector<uint64_t> bytes(layers_, 0);
        for (InstanceId id = 1; id < plan.instances.size(); ++id) {
            const Storage& storage = plan.graph.storage(plan.instances[id].storage);
            if (storage.role == TSR_ROLE_CACHE && storage.layer >= 0 && static_cast<size_t>(storage.layer) < layers_)
                bytes[static_cast<size_t>(storage.layer)] += plan.instances[id].bytes;
        }
        return bytes;
    }

    Candidate planned(Placement placement) const {
        LoweredGraph lowered = lower_graph(model_, placement, registry_, devices_, options_);
        std::deque<ChosenNode> chosen =
            choose_kernels(lowered, registry_, devices_, options_.pack_weights != PackWeights::kNever);
        Plan plan = assemble(std::move(lowered), std::move(chosen), registry_, devices_, options_);
        plan.prompt_rows_from = rows_of_a_prompt(plan);
        Candidate candidate{std::move(placement), std::move(plan)};
        candidate.excess = excess_bytes(candidate.plan, 0);
        candidate.device_excess = excess_bytes(candidate.plan, 1);
        candidate.seconds = typical_seconds(candidate.plan);
        return candidate;
    }

    const Graph& model_;
    const Registry& registry_;
    std::vector<const tsr_device_info*> devices_;
    const ScheduleOptions& options_;
    size_t layers_ = 0;
    std::vector<DeviceIndex> by_speed_;  // all but the CPU
    std::vector<uint64_t> layer_cache_;  // of the last plan
    bool cannot_fit_ = false;            // the weights take more than all devices have together
};

}  // namespace

Plan make_plan(const Graph& model, const Registry& registry, const Hardware& hardware, const ScheduleOptions& options) {
    std::vector<std::string> notes;
    Fitter fitter(model, registry, usable_devices(registry, hardware, notes), options);
    Candidate found = fitter.run();
    Plan plan = std::move(found.plan);
    plan.rules = placement_rules(model, found.placement, plan.devices);
    notes.insert(notes.end(), hardware.notes().begin(), hardware.notes().end());
    uint64_t all = 0;
    const uint64_t on_cpu = fitter.experts_on_cpu(found.placement, &all);
    if (plan.devices.size() > 1 && on_cpu > 0) {
        notes.push_back(fmt::format("{} of {} of routed experts lie on the CPU", size_text(on_cpu), size_text(all)));
    }
    plan.notes.insert(plan.notes.begin(), notes.begin(), notes.end());
    plan.notes.insert(plan.notes.end(), found.placement.notes.begin(), found.placement.notes.end());
    plan_streaming(plan, registry);
    return plan;
}

bool on_one_card(const tsr_device_info& a, const tsr_device_info& b) {
    return a.index == b.index && std::string_view(a.kind) == b.kind;
}

tsr_device_info whole_card(Devices devices, DeviceIndex device) {
    tsr_device_info card = *devices[device];
    card.memory_bytes = card.free_memory_bytes = 0;
    for (const tsr_device_info* part : devices) {
        if (!on_one_card(*part, card)) continue;
        card.memory_bytes += part->memory_bytes;
        card.free_memory_bytes += part->free_memory_bytes;
    }
    return card;
}

uint64_t context_bytes(Devices devices, DeviceIndex device) {
    const tsr_device_info card = whole_card(devices, device);
    if (std::string_view(card.kind) != "cuda" || card.memory_bytes == 0) return 0;
    // By default a thread has 1 KiB of stack, which the driver allocates for as many threads as the card can hold: at
    // most 2048 a multiprocessor. The rest is code, the context's own data and what it keeps for calls of the device.
    constexpr uint64_t kMiB = 1 << 20, kContext = 150 * kMiB, kStacks = 2 * kMiB;
    const uint64_t bytes = std::min(card.memory_bytes / 8, kContext + card.processors * kStacks);
    const double share = static_cast<double>(devices[device]->memory_bytes) / static_cast<double>(card.memory_bytes);
    return static_cast<uint64_t>(std::ceil(share * static_cast<double>(bytes)));
}

uint64_t usable_bytes(Devices devices, DeviceIndex index) {
    // Allocations of a GPU are rounded up; a host needs room for everything else that runs. Devices that have no
    // context of their own count what their driver takes in the same share.
    const tsr_device_info& device = *devices[index];
    const std::string_view kind = device.kind;
    const uint64_t margin = device.free_memory_bytes / (kind == "cpu" ? 50 : kind == "cuda" ? 64 : 32);
    return device.free_memory_bytes - std::min(margin + context_bytes(devices, index), device.free_memory_bytes);
}

std::string fit_advice(const Plan& plan, DeviceIndex device) {
    const DeviceMemory& memory = plan.memory[device];
    const uint64_t needed = memory.allocated(), usable = usable_bytes(plan.devices, device);
    if (needed <= usable) return {};
    // All in one unit, so that they can be compared.
    const bool large = needed >= uint64_t{1} << 30;
    const auto size = [&](uint64_t bytes) {
        return fmt::format("{:.2f} {}", static_cast<double>(bytes) / (large ? 1 << 30 : 1 << 20),
                           large ? "GiB" : "MiB");
    };
    const std::vector<bool> is_expert = find_experts(plan.graph);
    uint64_t experts = 0;
    for (const Instance& it : plan.instances) {
        if (it.storage && it.device == device && is_expert[it.storage]) experts += it.bytes;
    }
    std::string advice;
    const auto suggest = [&](const std::string& what) { advice += (advice.empty() ? "" : ", ") + what; };
    if (device == 0 && plan.options.pack_weights != PackWeights::kNever && plan.options.map_weights &&
        memory.weights > 0)
        suggest("-nr (uses the weights as they lie in the file)");
    if (device > 0 && experts > 0) suggest(fmt::format("--cpu-moe (routed experts take {})", size(experts)));
    if (device > 0) suggest("a smaller -ngl");
    if (memory.cache > 0) suggest(fmt::format("a smaller -c (the cache takes {})", size(memory.cache)));
    if (memory.activations + memory.workspace > needed / 8) suggest("a smaller -ub or -amb");
    const uint64_t context = context_bytes(plan.devices, device);
    return fmt::format("{} needs {}, {} available{}: {} missing. Try {}{}a smaller model", plan.devices[device]->id,
                       size(needed), size(usable),
                       context > 0 ? fmt::format(" beside {} for the driver's context", size(context)) : std::string(),
                       size(needed - usable), advice, advice.empty() ? "" : " or ");
}

void check_fit(const Plan& plan) {
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        if (const std::string advice = fit_advice(plan, device); !advice.empty()) fail(TSR_DOES_NOT_FIT, "{}", advice);
    }
}

}  // namespace tessera
