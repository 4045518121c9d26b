#include "core/plan/search.hpp"

#include "core/base/error.hpp"
#include "core/plan/assemble.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/layer_seconds.hpp"
#include "core/plan/layouts.hpp"
#include "core/plan/lower.hpp"
#include "core/plan/predict.hpp"
#include "core/plan/streaming.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tessera {
namespace {

// What devices are asked for beyond what they have, from `first` on.
uint64_t excess_bytes(const Plan& plan, DeviceIndex first) {
    uint64_t excess = 0;
    for (DeviceIndex device = first; device < plan.devices.size(); ++device) {
        const uint64_t needed = plan.memory[device].allocated(), usable = usable_bytes(plan.devices, device);
        excess += needed - std::min(needed, usable);
    }
    return excess;
}

size_t count_layers(const Graph& model) {
    int last = -1;
    for (const Node& node : model.nodes()) last = std::max(last, node.layer);
    return static_cast<size_t>(last + 1);
}

class Search {
  public:
    Search(const Graph& model, const Registry& registry, std::vector<const tsr_device_info*> devices,
           const ScheduleOptions& options)
        : model_(model),
          registry_(registry),
          devices_(std::move(devices)),
          options_(options),
          layers_(count_layers(model)),
          layer_seconds_(devices_, layers_) {
        for (DeviceIndex device = 1; device < devices_.size(); ++device) by_speed_.push_back(device);
    }

    Candidate run() {
        if (devices_.size() == 1) return the_only(place(model_, devices_, options_.placement, room_of({})));
        Candidate found = search();
        return options_.placement.first_fit ? std::move(found) : with_embedding(std::move(found));
    }

  private:
    Candidate search() {
        const PlacementOptions& asked = options_.placement;
        if (asked.gpu_layers >= 0) {
            Room room = room_of({});
            Candidate first = the_only(place_as_asked(model_, devices_, asked, room));
            room.layer_cache = cache_of(first.plan);  // the split counts it
            return the_only(place_as_asked(model_, devices_, asked, room));
        }
        sort_by_speed();
        Best best;
        std::set<size_t> counts = cannot_fit_ ? std::set<size_t>{by_speed_.size()} : device_counts();
        for (auto at = counts.begin(); at != counts.end(); ++at) {
            const std::vector<DeviceIndex> order(by_speed_.begin(), by_speed_.begin() + static_cast<ptrdiff_t>(*at));
            const bool whole = fill(order, Room::Shape::kSpread, best);
            if (cannot_fit_) {
                if (asked.first_fit || *at == by_speed_.size()) return best_of(best);
                best = {};
                tried_.clear();
                fill(by_speed_, Room::Shape::kSpread, best);
                return best_of(best);
            }
            if (best.fits() && (asked.first_fit || !asked.tensor_split.empty())) return best.take();
            if (*at == 0) continue;
            fill(order, whole ? Room::Shape::kBalanced : Room::Shape::kStacked, best);
            // The fewest that hold the whole model are worth finding, since each further one costs generation.
            if (!whole && enough_ > 0 && *at >= enough_ && *at < by_speed_.size()) counts.insert(*at + 1);
        }
        if (asked.tensor_split.empty() && !cannot_fit_ && !asked.first_fit) {
            without_the_fastest(best);
            without_a_kind(best);
        }
        return best_of(best);
    }

    // Where kernels can compute none of what was tried, the CPU alone may do.
    Candidate best_of(Best& best) {
        if (best.empty() && options_.placement.tensor_split.empty()) fill({}, Room::Shape::kSpread, best);
        if (best.empty()) std::rethrow_exception(why_not_);
        const Placement* steadiest = options_.placement.first_fit ? nullptr : best.steadiest();
        return steadiest ? the_only(*steadiest) : best.take();
    }

    Candidate the_only(Placement placement) {
        std::optional<Candidate> found = planned(std::move(placement));
        if (!found) std::rethrow_exception(why_not_);
        return std::move(*found);
    }

    void without_a_kind(Best& best) {
        for (const DeviceIndex left_out : by_speed_) {
            std::vector<DeviceIndex> order = by_speed_;
            std::erase_if(order, [&](DeviceIndex device) { return alike(*devices_[device], *devices_[left_out]); });
            if (order.empty()) return;
            const bool whole = fill(order, Room::Shape::kSpread, best);
            fill(order, whole ? Room::Shape::kBalanced : Room::Shape::kStacked, best);
        }
    }

    // A few slower devices that hold everything may do better than more faster and smaller ones.
    void without_the_fastest(Best& best) {
        for (size_t first = 1; first < by_speed_.size(); ++first) {
            if (alike(*devices_[by_speed_[first]], *devices_[by_speed_[first - 1]])) continue;
            const size_t enough = enough_from(first);
            if (enough == 0) return;
            for (size_t last = first + enough; last <= by_speed_.size(); ++last) {
                const std::vector<DeviceIndex> order(by_speed_.begin() + static_cast<ptrdiff_t>(first),
                                                     by_speed_.begin() + static_cast<ptrdiff_t>(last));
                if (!fill(order, Room::Shape::kSpread, best)) continue;
                fill(order, Room::Shape::kBalanced, best);
                break;
            }
        }
    }

    // How many devices from that one on in by_speed_ have room for the weights of all layers; 0 if all do not.
    size_t enough_from(size_t first) const {
        uint64_t wanted = 0, room = 0;
        for (StorageId id = 1; id < model_.storage_count(); ++id) {
            if (model_.storage(id).role == TSR_ROLE_WEIGHT && model_.storage(id).layer >= 0)
                wanted += model_.storage(id).bytes;
        }
        for (size_t at = first; at < by_speed_.size(); ++at) {
            room += usable_bytes(devices_, by_speed_[at]);
            if (room >= wanted) return at - first + 1;
        }
        return 0;
    }

    // By what a typical use takes if the device computes all layers, as if it had room for them; of those that are
    // alike, the one with most room is first, which may hold alone what several others hold.
    void sort_by_speed() {
        seconds_.assign(devices_.size(), 0);
        std::ranges::stable_sort(by_speed_, std::greater(),
                                 [&](DeviceIndex device) { return usable_bytes(devices_, device); });
        const auto same = [&](DeviceIndex device) { return alike(*devices_[device], *devices_[1]); };
        if (options_.placement.first_fit || std::ranges::all_of(by_speed_, same)) return;
        for (const DeviceIndex device : by_speed_) {
            for (DeviceIndex other = 1; other < device && seconds_[device] == 0; ++other) {
                if (alike(*devices_[device], *devices_[other])) seconds_[device] = seconds_[other];
            }
            if (seconds_[device] > 0) continue;
            Room room = room_of({device});
            room.bytes[device] = UINT64_MAX;
            const std::optional<Candidate> alone = planned(place(model_, devices_, options_.placement, room));
            if (!alone) {
                seconds_[device] = std::numeric_limits<double>::infinity();
                continue;
            }
            layer_seconds_.observe(alone->plan);
            seconds_[device] = alone->use.seconds();
            cannot_fit_ = cannot_fit_ || exceeds_all_memory(alone->plan);
            if (cannot_fit_) return;
        }
        std::ranges::stable_sort(by_speed_, {}, [&](DeviceIndex device) { return seconds_[device]; });
    }

    // How many of the devices to try, the fastest first: as few as hold everything, all, those of each speed, and none
    // where the host's memory is not much slower than theirs.
    std::set<size_t> device_counts() {
        std::set<size_t> counts{by_speed_.size()};
        if (!options_.placement.tensor_split.empty()) return counts;
        enough_ = enough_from(0);
        if (enough_ > 0) counts.insert(enough_);
        for (size_t i = 1; i < by_speed_.size(); ++i) {
            if (!alike(*devices_[by_speed_[i]], *devices_[by_speed_[i - 1]])) counts.insert(i);
        }
        if (devices_[0]->memory_bandwidth > 0.5 * devices_[by_speed_.front()]->memory_bandwidth) counts.insert(0);
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
            const bool may_be_mapped = it.place == Place::kMapped || (it.device != 0 && options_.map_weights);
            if (it.storage == 0 || may_be_mapped || it.place == Place::kLoading || counted[it.storage]) continue;
            const Storage& storage = plan.graph.storage(it.storage);
            if (storage.role != TSR_ROLE_WEIGHT || storage.derived) continue;
            counted[it.storage] = true;
            bytes += storage.bytes;
        }
        for (DeviceIndex device = 0; device < devices_.size(); ++device) usable += usable_bytes(devices_, device);
        return bytes > usable;
    }

    // Fills the devices' memory. Where experts stay on the CPU that a card could compute for prompts, also with room
    // left for them to be copied there. Whether the devices hold all layers.
    bool fill(const std::vector<DeviceIndex>& order, Room::Shape shape, Best& all) {
        std::vector<uint64_t> kept(devices_.size());
        std::optional<Candidate> found = filled(order, shape, kept, all);
        if (!found) return !infeasible_ && !order.empty();
        const bool whole = !order.empty() && found->fits() && found->placement.layers_on_devices(model_);
        if (!whole && found->fits() && !options_.placement.first_fit && !order.empty()) {
            kept = streaming_wish(found->plan, registry_);
            all.offer(std::move(*found));
            if (std::ranges::none_of(order, [&](DeviceIndex device) { return kept[device] > 0; })) return false;
            found = filled(order, shape, kept, all);
            if (!found) return false;
        }
        all.offer(std::move(*found));
        return whole;
    }

    // With `kept` bytes of each device left; what fits on the way is noted in `all`. The bytes of activations,
    // workspaces and layouts are known only from the plan, so the room for weights and the plan are computed in
    // alternation until they agree. Nothing if all that comes of it was planned before, or if kernels cannot compute
    // it: infeasible_ tells.
    std::optional<Candidate> filled(const std::vector<DeviceIndex>& order, Room::Shape shape,
                                    const std::vector<uint64_t>& kept, Best& all) {
        constexpr int kRounds = 5;
        Room room = room_of(order);
        room.shape = shape;
        for (const DeviceIndex device : order) room.bytes[device] -= std::min(room.bytes[device], kept[device]);
        std::optional<Candidate> best;
        infeasible_ = false;
        for (int round = 0; round < kRounds; ++round) {
            if (shape == Room::Shape::kBalanced) room.layer_seconds = layer_seconds_.all();
            Placement placement = place(model_, devices_, options_.placement, room);
            if (const auto known = tried_.find(placement.storage_device); known != tried_.end()) {
                if (!fit_room(room, known->second, placement, kept)) break;
                continue;
            }
            std::optional<Candidate> made = planned(placement);
            if (!made) {
                infeasible_ = true;
                break;
            }
            Candidate candidate = std::move(*made);
            layer_seconds_.observe(candidate.plan);
            const Needs& needs =
                tried_.emplace(candidate.placement.storage_device, needs_of(candidate.plan)).first->second;
            const bool changed = fit_room(room, needs, candidate.placement, kept) || shape == Room::Shape::kBalanced;
            layer_cache_ = room.layer_cache;
            const bool fits = candidate.fits();
            cannot_fit_ = cannot_fit_ || (round == 0 && !fits && exceeds_all_memory(candidate.plan));
            // Then it is enough that the devices are not to blame.
            const bool is_enough = cannot_fit_ && (candidate.device_excess == 0 || options_.placement.first_fit);
            if (fits) all.note(candidate);
            if (!best || candidate.better_than(*best)) best = std::move(candidate);
            if (is_enough) break;
            if (!changed || (fits && options_.placement.first_fit)) break;
        }
        return best;
    }

    // What a plan takes of each device but for streaming, and each layer's cache.
    struct Needs {
        std::vector<uint64_t> bytes, layer_cache;
    };
    Needs needs_of(const Plan& plan) const {
        Needs needs{std::vector<uint64_t>(devices_.size()), cache_of(plan)};
        for (DeviceIndex device = 0; device < devices_.size(); ++device)
            needs.bytes[device] = plan.memory[device].allocated() - plan.memory[device].streaming;
        return needs;
    }

    // Leaves room for what the plan of the placement takes beside weights and caches. Whether that changed it.
    bool fit_room(Room& room, const Needs& needs, const Placement& placement, const std::vector<uint64_t>& kept) const {
        room.layer_cache = needs.layer_cache;
        bool changed = false;
        for (const DeviceIndex device : room.order) {
            const uint64_t needed = needs.bytes[device];
            const uint64_t beside = kept[device] + needed - std::min(counted(placement, room, device), needed);
            const uint64_t usable = usable_bytes(devices_, device), now = usable - std::min(usable, beside);
            changed |= now != room.bytes[device];
            room.bytes[device] = now;
        }
        return changed;
    }

    // Rows of the embedding are looked up on the CPU, which costs no memory of a card. But where cards compute all
    // else, that copies twice to the first one, and a step that the host takes part in holds up the next: there the
    // embedding goes to the card of the first layer, if it has room.
    Candidate with_embedding(Candidate found) {
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
        std::optional<Candidate> moved = planned(std::move(placement));
        const auto on_host = [](const PlannedNode& node) { return node.device == 0; };
        const bool gains = moved && moved->device_excess == 0 && moved->excess <= found.excess &&
                           std::ranges::none_of(moved->plan.nodes, on_host);
        return gains ? std::move(*moved) : std::move(found);
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

    // Nothing, and the reason in why_not_, if no kernels compute all nodes where they lie with operands in layouts that
    // all accept: elsewhere others may.
    std::optional<Candidate> planned(Placement placement) {
        LoweredGraph lowered = lower_graph(model_, placement, registry_, devices_, options_);
        std::deque<ChosenNode> chosen;
        try {
            chosen = choose_kernels(lowered, registry_, devices_, options_.pack_weights != PackWeights::kNever);
        } catch (const Error& error) {
            if (error.code() != TSR_UNSUPPORTED) throw;
            if (!why_not_) why_not_ = std::current_exception();
            return std::nullopt;
        }
        Plan plan = assemble(std::move(lowered), std::move(chosen), registry_, devices_, options_);
        plan.prompt_rows_from = rows_of_a_prompt(plan);
        Candidate candidate{std::move(placement), std::move(plan)};
        if (!options_.placement.first_fit) plan_streaming(candidate.plan, registry_);
        candidate.excess = excess_bytes(candidate.plan, 0);
        candidate.device_excess = excess_bytes(candidate.plan, 1);
        candidate.use = typical_use(candidate.plan);
        return candidate;
    }

    const Graph& model_;
    const Registry& registry_;
    std::vector<const tsr_device_info*> devices_;
    const ScheduleOptions& options_;
    const size_t layers_;
    LayerSeconds layer_seconds_;
    std::vector<DeviceIndex> by_speed_;  // all but the CPU
    std::vector<double> seconds_;        // of a typical use, by device; 0 where all are alike
    size_t enough_ = 0;                  // of them, the fastest, that have room for all weights; 0: all have not
    std::vector<uint64_t> layer_cache_;  // of the last plan
    std::map<std::vector<uint32_t>, Needs> tried_;  // of what was planned, by Placement::storage_device
    bool cannot_fit_ = false;                       // the weights take more than all devices have together
    bool infeasible_ = false;                       // what was to be filled last; then why_not_ is set
    std::exception_ptr why_not_;                    // of the first placement that kernels cannot compute
};

}  // namespace

Candidate search_placement(const Graph& model, const Registry& registry, Devices devices,
                           const ScheduleOptions& options) {
    return Search(model, registry, {devices.begin(), devices.end()}, options).run();
}

}  // namespace tessera
