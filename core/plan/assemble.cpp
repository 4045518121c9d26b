#include "core/plan/assemble.hpp"

#include "core/base/checked.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/plan/accesses.hpp"
#include "core/plan/arena.hpp"
#include "core/plan/cache_groups.hpp"
#include "core/plan/init_nodes.hpp"
#include "core/plan/order.hpp"
#include "core/plan/packing.hpp"
#include "core/plan/step_builder.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera {
namespace {

uint64_t alignment_of(DeviceIndex device) {
    return device == 0 ? kHostAlignment : kDeviceAlignment;
}

// Converts the chosen kernels and layouts into instances, actions and bytes.
class Assembler {
  public:
    Assembler(LoweredGraph lowered, std::deque<ChosenNode> chosen, const Registry& registry,
              std::vector<const tsr_device_info*> devices, const ScheduleOptions& options)
        : chosen_(std::move(chosen)),
          node_device_(std::move(lowered.node_device)),
          registry_(registry),
          plan_(std::move(lowered.graph)) {
        plan_.devices = std::move(devices);
        plan_.options = options;
        plan_.lowerings = std::move(lowered.choices);
        plan_.notes = std::move(lowered.notes);
        plan_.memory.resize(plan_.devices.size());
        plan_.instances.emplace_back();  // 0: none
    }

    Plan run() {
        plan_.cache_groups = cache_groups_of(graph());
        for (uint32_t i = 0; i < chosen_.size(); ++i) add_node(i);
        build_step(plan_, [&](StorageId storage, DeviceIndex device) { return instance(storage, device, "", ""); });
        defer_packing();
        reserve_constants();
        reserve_inputs();
        count_slots();
        order_step();
        return std::move(plan_);
    }

  private:
    const Graph& graph() const { return plan_.graph; }

    InstanceId instance(StorageId storage, DeviceIndex device, const std::string& layout, const std::string& why_copy) {
        const auto [at, fresh] = ids_.try_emplace({storage, device, layout}, 0);
        if (fresh) {
            Instance made;
            made.storage = storage;
            made.device = device;
            made.layout = layout;
            made.why_copy = why_copy;
            made.bytes = bytes_of(graph().storage(storage), layout, device);
            plan_.instances.push_back(std::move(made));
            at->second = static_cast<InstanceId>(plan_.instances.size() - 1);
        }
        return at->second;
    }

    uint64_t bytes_of(const Storage& storage, const std::string& layout, DeviceIndex device) const {
        if (layout.empty()) return storage.bytes;
        const Packing packing(storage, layout, *plan_.devices[device], registry_);
        return checked_mul(packing.groups(), packing.packed_bytes, "bytes of a packed weight");
    }

    void add_node(uint32_t index) {
        const Node& node = graph().nodes()[index];
        const ChosenNode& chosen = chosen_[index];
        PlannedNode planned;
        planned.node = index;
        planned.device = node_device_[index];
        planned.kernel = chosen.candidate.kernel;
        planned.variant = printable(chosen.candidate.plan.reason, sizeof chosen.candidate.plan.reason);
        planned.estimate = estimate_of(chosen.candidate.plan);
        planned.workspace_bytes = chosen.candidate.plan.workspace_bytes;
        planned.minimum_scratch_bytes = chosen.candidate.plan.minimum_scratch_bytes;
        planned.rejected = chosen.rejected;
        if (node.stage == TSR_STAGE_INIT) {
            plan_.init_nodes.push_back(std::move(planned));
            return;
        }
        for (uint32_t i = 0; i < node.inputs.size() + node.outputs.size(); ++i) {
            const Value value = i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
            planned.operands.push_back(value == 0 ? 0
                                                  : instance(graph().storage_of(value), planned.device,
                                                             chosen.layouts[i], chosen.why_copy[i]));
        }
        for (uint32_t i = 0; i < node.inputs.size(); ++i) {
            if (!chosen.candidate.accepts(i, "")) never_canonical_.insert(planned.operands[i]);
        }
        plan_.nodes.push_back(std::move(planned));
    }

    // Matrices come first: a step reads all of each. Of stacks it reads a part, where they are experts'.
    void defer_packing() {
        if (plan_.options.pack_weights != PackWeights::kBetweenSteps || !plan_.options.map_weights) return;
        for (const bool stacked : {false, true}) {
            for (InstanceId id = 1; id < plan_.instances.size(); ++id) {
                Instance& it = plan_.instances[id];
                const Storage& storage = graph().storage(it.storage);
                if (storage.role != TSR_ROLE_WEIGHT || storage.derived || !storage.source_layout.empty() ||
                    !storage.can_be_mapped() || it.device != 0 || it.layout.empty() || never_canonical_.contains(id) ||
                    (storage.row_bytes > row_bytes(storage.type, storage.row_elements)) != stacked)
                    continue;
                it.place = Place::kDeferred;
                plan_.deferred.push_back(id);
            }
        }
    }

    // Deferred weights are kept apart: a neighbour would otherwise cause their large pages to be allocated at load.
    void reserve_constants() {
        for (const bool deferred : {false, true}) {
            for (Instance& it : plan_.instances) {
                if (it.storage && (it.place == Place::kDeferred) == deferred) reserve_constant(it);
            }
        }
    }

    void reserve_constant(Instance& it) {
        const Storage& storage = graph().storage(it.storage);
        DeviceMemory& memory = plan_.memory[it.device];
        // A vector in the mapped file costs a page of its own, which may be a large one.
        const bool vector = storage.bytes == row_bytes(storage.type, storage.row_elements);
        if (storage.role == TSR_ROLE_WEIGHT && it.device == 0 && it.layout == storage.source_layout &&
            !storage.derived && !vector && storage.can_be_mapped() && plan_.options.map_weights) {
            it.place = Place::kMapped;
            memory.mapped += it.bytes;
        } else if (storage.role == TSR_ROLE_WEIGHT || storage.role == TSR_ROLE_CACHE) {
            uint64_t& total = storage.role == TSR_ROLE_WEIGHT ? memory.weights : memory.cache;
            it.offset = total;
            total =
                checked_align_up(checked_add(total, it.bytes, "bytes of weights"), alignment_of(it.device), "weights");
        }
    }

    // The ranges, and after them inputs, in the same places on every device.
    void reserve_inputs() {
        InputBlock& block = plan_.input_block;
        std::vector<StorageId> inputs;
        const auto bytes_of_rows = [&](StorageId id) {
            return graph().storage(id).range == TSR_RANGE_FIXED ? 0 : graph().storage(id).bytes;
        };
        for (StorageId storage = 1; storage < graph().storage_count(); ++storage) {
            if (graph().storage(storage).role == TSR_ROLE_INPUT) inputs.push_back(storage);
        }
        std::ranges::stable_sort(inputs, {}, bytes_of_rows);
        if (!inputs.empty() && bytes_of_rows(inputs.back()) > 0) block.last = inputs.back();
        block.bytes = checked_align_up(sizeof(tsr_range) * TSR_RANGE_COUNT, kHostAlignment, "inputs");
        std::map<StorageId, uint64_t> offsets;
        for (const StorageId storage : inputs) {
            instance(storage, 0, "", "");
            offsets[storage] = block.last_begin = block.bytes;
            block.bytes = checked_align_up(checked_add(block.bytes, graph().storage(storage).bytes, "inputs"),
                                           kHostAlignment, "inputs");
        }
        for (Instance& it : plan_.instances) {
            if (const auto at = offsets.find(it.storage); at != offsets.end()) it.offset = at->second;
        }
        block.bytes = checked_align_up(block.bytes, kDeviceAlignment, "inputs");
    }

    // Steps overlap where several devices work on them, or one does while the host prepares the next; nodes on the host
    // hold its thread up, so that nothing is gained.
    void count_slots() {
        std::set<DeviceIndex> devices;
        for (const PlannedNode& node : plan_.nodes) devices.insert(node.device);
        constexpr size_t kMaximumSlots = 16;
        plan_.step.slots = devices.contains(0) ? 1 : static_cast<uint32_t>(std::min(devices.size() + 1, kMaximumSlots));
    }

    // Waits within the step, then memory for what is alive at once, then waits for what the step before did in that
    // memory.
    void order_step() {
        Step& step = plan_.step;
        StepOrder order(step);
        std::vector<std::vector<Touch>> touches;
        for (const Action& action : step.actions) touches.push_back(touches_of(plan_, action));
        order.add_waits([&](ActionId a, ActionId b) { return conflict_in_step(touches[a], touches[b]); });
        reserve_activations(order);
        reserve_workspace();
        std::vector<std::vector<Access>> accesses;
        for (const std::vector<Touch>& list : touches) {
            std::vector<Access>& made = accesses.emplace_back();
            for (const Touch& touch : list) made.push_back(access_of(plan_, touch));
        }
        // With one slot the step before has ended.
        if (step.slots > 1)
            order.add_waits_for_previous([&](ActionId a, ActionId b) {
                // What the host writes goes to another slot; that it is free is seen to when it is taken.
                if (step.actions[b].kind == ActionKind::kInputs || step.actions[b].kind == ActionKind::kOutputs)
                    return false;
                for (const Access& x : accesses[a]) {
                    for (const Access& y : accesses[b]) {
                        if ((x.writes || y.writes) && x.overlaps(y)) return true;
                    }
                }
                return false;
            });
        order.finish();
    }

    // When an instance is used: by the position of a node in its action.
    struct Use {
        ActionId action;
        uint32_t node;
    };
    struct Life {
        Use first{};
        std::vector<Use> last;  // one a track
    };

    void use(Life& life, ActionId action, uint32_t node) const {
        const TrackIndex track = plan_.step.actions[action].track;
        if (life.last.empty()) life.first = {action, node};
        const auto at = std::ranges::find_if(
            life.last, [&](const Use& one) { return plan_.step.actions[one.action].track == track; });
        if (at == life.last.end()) {
            life.last.push_back({action, node});
        } else {
            *at = {action, node};
        }
    }

    std::map<InstanceId, Life> lives() const {
        std::map<InstanceId, Life> found;
        const auto is_activation = [&](InstanceId id) {
            return id && graph().storage(plan_.instances[id].storage).role == TSR_ROLE_ACTIVATION;
        };
        for (ActionId id = 0; id < plan_.step.actions.size(); ++id) {
            const Action& action = plan_.step.actions[id];
            for (const InstanceId one : {action.from, action.to, action.peer}) {
                if (is_activation(one)) use(found[one], id, 0);
            }
            for (uint32_t i = action.first; i < action.first + action.count; ++i) {
                for (const InstanceId one : plan_.nodes[i].operands) {
                    if (is_activation(one)) use(found[one], id, i);
                }
            }
            if (action.kind != ActionKind::kOutputs) continue;
            for (InstanceId one = 1; one < plan_.instances.size(); ++one) {
                if (plan_.is_output(one)) use(found[one], id, 0);
            }
        }
        return found;
    }

    void reserve_activations(const StepOrder& order) {
        const auto before = [&](const Use& a, const Use& b) {
            return a.action == b.action ? a.node < b.node : order.before(a.action, b.action);
        };
        const auto ends_before = [&](const Life& a, const Life& b) {
            return std::ranges::all_of(a.last, [&](const Use& last) { return before(last, b.first); });
        };
        const std::map<InstanceId, Life> all = lives();
        for (DeviceIndex device = 0; device < plan_.devices.size(); ++device) {
            DeviceMemory& memory = plan_.memory[device];
            const bool used =
                std::ranges::any_of(plan_.step.tracks, [&](const Track& one) { return one.device == device; });
            const uint64_t blocks = used ? (device == 0 ? plan_.step.slots : 1) * plan_.input_block.bytes : 0;
            for (const bool staging : {false, true}) {
                std::vector<InstanceId> ids;
                std::vector<const Life*> lifetimes;
                std::vector<uint64_t> bytes;
                for (const auto& [id, life] : all) {
                    const Instance& it = plan_.instances[id];
                    if (it.device != device || (it.place == Place::kStaging) != staging) continue;
                    ids.push_back(id);
                    lifetimes.push_back(&life);
                    bytes.push_back(plan_.instances[id].bytes);
                }
                const auto together = [&](size_t a, size_t b) {
                    return !ends_before(*lifetimes[a], *lifetimes[b]) && !ends_before(*lifetimes[b], *lifetimes[a]);
                };
                uint64_t total = 0;
                const std::vector<uint64_t> offsets = pack_buffers(bytes, alignment_of(device), together, total);
                const uint64_t begin = staging ? 0 : blocks;
                for (size_t i = 0; i < ids.size(); ++i) plan_.instances[ids[i]].offset = begin + offsets[i];
                (staging ? memory.staging : memory.activations) = begin + total;
            }
        }
    }

    void reserve_workspace() {
        for (const PlannedNode& node : plan_.nodes) {
            uint64_t& largest = plan_.memory[node.device].workspace;
            largest = std::max(largest, node.workspace_bytes);
        }
        for (DeviceMemory& memory : plan_.memory) {
            memory.workspace = checked_align_up(memory.workspace, kDeviceAlignment, "workspace");
            memory.staging = checked_align_up(memory.staging, kDeviceAlignment, "staging");
        }
        plan_init_nodes(plan_, registry_);
        reserve_loading(plan_, registry_);
    }

    std::deque<ChosenNode> chosen_;
    std::vector<DeviceIndex> node_device_;
    const Registry& registry_;
    Plan plan_;
    std::set<InstanceId> never_canonical_;  // some reader takes it packed alone
    std::map<std::tuple<StorageId, DeviceIndex, std::string>, InstanceId> ids_;
};

}  // namespace

Plan assemble(LoweredGraph lowered, std::deque<ChosenNode> chosen, const Registry& registry,
              std::vector<const tsr_device_info*> devices, const ScheduleOptions& options) {
    return Assembler(std::move(lowered), std::move(chosen), registry, std::move(devices), options).run();
}

}  // namespace tessera
