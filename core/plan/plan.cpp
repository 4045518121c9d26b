#include "core/plan/plan.hpp"

#include "core/base/checked.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/plan/arena.hpp"
#include "core/plan/layouts.hpp"
#include "core/plan/lower.hpp"
#include "core/plan/placement.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera {
namespace {

constexpr uint64_t kHostAlignment = 64;
constexpr uint64_t kDeviceAlignment = 256;

uint64_t alignment_of(DeviceIndex device) {
    return device == 0 ? kHostAlignment : kDeviceAlignment;
}

// Turns what was chosen into instances, segments and bytes.
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
        for (uint32_t i = 0; i < chosen_.size(); ++i) add_node(i);
        cut_segments();
        bind_inputs();
        defer_packing();
        reserve_constants();
        reserve_activations();
        reserve_scratch();
        return std::move(plan_);
    }

  private:
    const Graph& graph() const { return plan_.graph; }

    InstanceId instance(StorageId storage, DeviceIndex device, const std::string& layout, bool loading,
                        const std::string& why_copy) {
        const auto [at, fresh] = ids_.try_emplace({storage, device, layout, loading}, 0);
        if (fresh) {
            Instance made;
            made.storage = storage;
            made.device = device;
            made.layout = layout;
            made.loading = loading;
            made.why_copy = why_copy;
            made.bytes = packed_bytes(graph().storage(storage), layout);
            plan_.instances.push_back(std::move(made));
            at->second = static_cast<InstanceId>(plan_.instances.size() - 1);
        }
        return at->second;
    }

    uint64_t packed_bytes(const Storage& storage, const std::string& layout) const {
        if (layout.empty()) return storage.bytes;
        const tsr_layout* packing = registry_.find_layout(layout);
        if (!packing) fail(TSR_INTERNAL, "{}: no plugin brings the layout '{}'", storage.name, layout);
        const uint64_t elements = storage.row_elements;
        const uint64_t rows = storage.bytes / row_bytes(storage.type, elements);
        if (packing->type != storage.type || rows % packing->group_rows || elements % packing->elements_multiple) {
            fail(TSR_INTERNAL, "{}: {} rows of {} elements ({}) cannot be packed as '{}'", storage.name, rows, elements,
                 type_info(storage.type).name, layout);
        }
        return checked_mul(rows / packing->group_rows, packing->group_bytes(packing, static_cast<int64_t>(elements)),
                           "bytes of a packed weight");
    }

    void add_node(uint32_t index) {
        const Node& node = graph().nodes()[index];
        const ChosenNode& chosen = chosen_[index];
        PlannedNode planned;
        planned.node = index;
        planned.device = node_device_[index];
        planned.kernel = chosen.candidate.kernel;
        planned.seconds_one_row = chosen.candidate.plan.seconds_one_row;
        planned.seconds_all_rows = chosen.candidate.plan.seconds_all_rows;
        planned.workspace_bytes = chosen.candidate.plan.workspace_bytes;
        planned.minimum_scratch_bytes = chosen.candidate.plan.minimum_scratch_bytes;
        planned.rejected = chosen.rejected;
        const bool init = node.stage == TSR_STAGE_INIT;
        for (uint32_t i = 0; i < node.inputs.size() + node.outputs.size(); ++i) {
            const Value value = i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
            planned.operands.push_back(value == 0 ? 0
                                                  : instance(graph().storage_of(value), planned.device,
                                                             chosen.layouts[i], init, chosen.why_copy[i]));
        }
        for (uint32_t i = 0; i < node.inputs.size() && !init; ++i) {
            if (!chosen.candidate.accepts(i, "")) never_canonical_.insert(planned.operands[i]);
        }
        (init ? plan_.init_nodes : plan_.nodes).push_back(std::move(planned));
    }

    // Matrices come first: a step reads all of each. Of stacks it reads a part, where they are experts'.
    void defer_packing() {
        if (plan_.options.pack_weights != PackWeights::kBetweenSteps || !plan_.options.map_weights) return;
        for (const bool stacked : {false, true}) {
            for (InstanceId id = 1; id < plan_.instances.size(); ++id) {
                Instance& it = plan_.instances[id];
                const Storage& storage = graph().storage(it.storage);
                if (storage.role != TSR_ROLE_WEIGHT || storage.derived || !storage.source_layout.empty() ||
                    it.device != 0 || it.layout.empty() || never_canonical_.contains(id) ||
                    (storage.row_bytes > row_bytes(storage.type, storage.row_elements)) != stacked)
                    continue;
                it.deferred = true;
                plan_.deferred.push_back(id);
            }
        }
    }

    // Walks the nodes in order and keeps where the current contents of each activation are.
    void cut_segments() {
        std::map<StorageId, DeviceIndex> home;          // device that wrote it last
        std::map<StorageId, std::set<DeviceIndex>> at;  // devices whose copy is current
        for (uint32_t i = 0; i < plan_.nodes.size(); ++i) {
            PlannedNode& node = plan_.nodes[i];
            const Node& what = graph().nodes()[node.node];
            std::vector<Transfer> transfers;
            for (size_t k = 0; k < node.operands.size(); ++k) {
                const InstanceId id = node.operands[k];
                const Instance wanted = plan_.instances[id];
                if (id == 0 || graph().storage(wanted.storage).role != TSR_ROLE_ACTIVATION) continue;
                auto& current = at[wanted.storage];
                if (!current.empty() && !current.contains(node.device)) {
                    const InstanceId from = instance(wanted.storage, home[wanted.storage], "", false, "");
                    transfers.push_back({from, id, wanted.bytes});
                    current.insert(node.device);
                }
                if (k >= what.inputs.size()) {
                    current = {node.device};
                    home[wanted.storage] = node.device;
                }
            }
            if (plan_.segments.empty() || plan_.segments.back().device != node.device || !transfers.empty()) {
                plan_.segments.push_back({node.device, std::move(transfers), i, 0});
            }
            ++plan_.segments.back().count;
        }
        // Outputs are read on the CPU.
        for (const char* name : {"logits", "hidden"}) {
            const Value value = graph().find_output(name);
            if (!value) continue;
            const StorageId storage = graph().storage_of(value);
            if (at[storage].contains(0)) continue;
            const InstanceId from = instance(storage, home[storage], "", false, "");
            const InstanceId to = instance(storage, 0, "", false, "");
            plan_.segments.push_back(
                {0, {{from, to, plan_.instances[to].bytes}}, static_cast<uint32_t>(plan_.nodes.size()), 0});
        }
    }

    // The CPU always has a copy of each input: it is where the core writes them.
    void bind_inputs() {
        const size_t count = plan_.instances.size();
        for (InstanceId id = 1; id < count; ++id) {
            const Instance there = plan_.instances[id];
            if (graph().storage(there.storage).role != TSR_ROLE_INPUT || there.device == 0) continue;
            instance(there.storage, 0, "", false, "");
            plan_.uploads.push_back(id);
        }
        for (StorageId storage = 1; storage < graph().storage_count(); ++storage) {
            if (graph().storage(storage).role == TSR_ROLE_INPUT) instance(storage, 0, "", false, "");
        }
    }

    // What is deferred lies apart: else its large pages would be there from the start, for the sake of a neighbour.
    void reserve_constants() {
        for (const bool deferred : {false, true}) {
            for (Instance& it : plan_.instances) {
                if (it.storage && !it.loading && it.deferred == deferred) reserve_constant(it);
            }
        }
    }

    void reserve_constant(Instance& it) {
        const Storage& storage = graph().storage(it.storage);
        DeviceMemory& memory = plan_.memory[it.device];
        // A vector in the mapped file costs a page of its own, which may be a large one.
        const bool vector = storage.bytes == row_bytes(storage.type, storage.row_elements);
        if (storage.role == TSR_ROLE_WEIGHT && it.device == 0 && it.layout == storage.source_layout &&
            !storage.derived && !vector && plan_.options.map_weights) {
            it.mapped = true;
            memory.mapped += it.bytes;
        } else if (storage.role == TSR_ROLE_WEIGHT || storage.role == TSR_ROLE_CACHE) {
            uint64_t& total = storage.role == TSR_ROLE_WEIGHT ? memory.weights : memory.cache;
            it.offset = total;
            total =
                checked_align_up(checked_add(total, it.bytes, "bytes of weights"), alignment_of(it.device), "weights");
        }
    }

    void reserve_activations() {
        const auto end = static_cast<uint32_t>(plan_.nodes.size());
        std::deque<Lifetime> lives(plan_.instances.size(), {0, end + 1, 0, 0});
        const auto touch = [&](InstanceId id, uint32_t step) {
            lives[id].first = std::min(lives[id].first, step);
            lives[id].last = std::max(lives[id].last, step);
        };
        for (const Segment& segment : plan_.segments) {
            for (const Transfer& transfer : segment.transfers) {
                touch(transfer.from, segment.first);
                touch(transfer.to, segment.first);
            }
        }
        for (uint32_t i = 0; i < end; ++i) {
            for (const InstanceId id : plan_.nodes[i].operands) touch(id, i);
        }
        for (const char* name : {"logits", "hidden"}) {
            if (const Value value = graph().find_output(name))
                touch(instance(graph().storage_of(value), 0, "", false, ""), end);
        }
        for (DeviceIndex device = 0; device < plan_.devices.size(); ++device) {
            std::vector<InstanceId> ids;
            std::deque<Lifetime> here;
            for (InstanceId id = 1; id < plan_.instances.size(); ++id) {
                const Instance& it = plan_.instances[id];
                const tsr_role role = graph().storage(it.storage).role;
                if (it.device != device || it.loading || (role != TSR_ROLE_ACTIVATION && role != TSR_ROLE_INPUT))
                    continue;
                Lifetime life = lives[id];
                if (role == TSR_ROLE_INPUT) life = {0, 0, end, 0};  // written before the step begins
                life.bytes = it.bytes;
                ids.push_back(id);
                here.push_back(life);
            }
            plan_.memory[device].activations = pack_lifetimes(here, alignment_of(device));
            for (size_t i = 0; i < ids.size(); ++i) plan_.instances[ids[i]].offset = here[i].offset;
        }
    }

    void reserve_scratch() {
        for (const PlannedNode& node : plan_.nodes) {
            uint64_t& most = plan_.memory[node.device].workspace;
            most = std::max(most, node.workspace_bytes);
        }
        for (const Segment& segment : plan_.segments) {
            for (const Transfer& t : segment.transfers) {
                if (plan_.instances[t.from].device == 0 || plan_.instances[t.to].device == 0) continue;
                plan_.memory[0].staging = std::max(plan_.memory[0].staging, t.max_bytes);
            }
        }
        for (DeviceMemory& memory : plan_.memory) {
            memory.workspace = checked_align_up(memory.workspace, kDeviceAlignment, "workspace");
            memory.staging = checked_align_up(memory.staging, kDeviceAlignment, "staging");
        }
        // Other devices than the CPU read the step's ranges from memory of their own, past the workspace.
        for (DeviceIndex device = 1; device < plan_.devices.size(); ++device) {
            DeviceMemory& memory = plan_.memory[device];
            if (memory.allocated() > 0) memory.workspace += kRangesBytes;
        }
        plan_.memory[0].loading = loading_bytes(plan_);
    }

    std::deque<ChosenNode> chosen_;
    std::vector<DeviceIndex> node_device_;
    const Registry& registry_;
    Plan plan_;
    std::set<InstanceId> never_canonical_;  // some reader takes it packed alone
    std::map<std::tuple<StorageId, DeviceIndex, std::string, bool>, InstanceId> ids_;
};

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

Plan plan_once(const Graph& model, const Registry& registry, const std::vector<const tsr_device_info*>& devices,
               const ScheduleOptions& options) {
    const Placement placement = place(model, devices, options, 0);
    LoweredGraph lowered = lower_graph(model, placement, registry, devices, options);
    std::deque<ChosenNode> chosen =
        choose_kernels(lowered, registry, devices, options.pack_weights != PackWeights::kNever);
    Plan plan = Assembler(std::move(lowered), std::move(chosen), registry, devices, options).run();
    plan.notes.insert(plan.notes.end(), placement.notes.begin(), placement.notes.end());
    return plan;
}

bool fits_gpus(const Plan& plan) {
    for (DeviceIndex device = 1; device < plan.devices.size(); ++device) {
        if (plan.memory[device].allocated() > usable_bytes(*plan.devices[device])) return false;
    }
    return true;
}

// The least value in [low, high] for which `fits` holds, given that it holds for `high` and grows monotonically.
template <typename Fits>
int least(int low, int high, Fits&& fits) {
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (fits(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

}  // namespace

uint64_t loading_bytes(const Plan& plan) {
    uint64_t most = kLoadingChunk * std::max<uint64_t>(plan.devices[0]->threads, 1);
    for (const PlannedNode& node : plan.init_nodes) {
        uint64_t bytes = node.workspace_bytes;
        for (const InstanceId id : node.operands) {
            bytes =
                checked_add(bytes, checked_align_up(plan.instances[id].bytes, kHostAlignment, "loading"), "loading");
        }
        most = std::max(most, checked_align_up(bytes, kDeviceAlignment, "loading"));
    }
    return most;
}

uint64_t usable_bytes(const tsr_device_info& device) {
    // A GPU's driver keeps some for itself beyond what it reports; a host needs room for everything else that runs.
    const uint64_t margin = device.free_memory_bytes / (std::string_view(device.kind) == "cpu" ? 50 : 32);
    return device.free_memory_bytes - margin;
}

void check_fit(const Plan& plan) {
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const uint64_t needed = plan.memory[device].allocated(), usable = usable_bytes(*plan.devices[device]);
        if (needed <= usable) continue;
        fail(TSR_DOES_NOT_FIT, "{} needs {} and has {} to give: {} too much", plan.devices[device]->id,
             mebibytes(needed), mebibytes(usable), mebibytes(needed - usable));
    }
}

Plan make_plan(const Graph& model, const Registry& registry, const Hardware& hardware, const ScheduleOptions& options) {
    std::vector<std::string> notes;
    const auto devices = usable_devices(registry, hardware, notes);
    int layers = 0;
    for (const Node& node : model.nodes()) layers = std::max(layers, node.layer + 1);

    ScheduleOptions fitted = options;
    Plan plan = plan_once(model, registry, devices, fitted);
    if (options.placement.gpu_layers < 0 && devices.size() > 1 && !fits_gpus(plan)) {
        // Routed experts leave first, the first layers' before the last: they are read least often for their size.
        const auto fits = [&] { return fits_gpus(plan_once(model, registry, devices, fitted)); };
        fitted.placement.cpu_expert_layers = -1;
        if (fits()) {
            fitted.placement.cpu_expert_layers =
                least(std::max(options.placement.cpu_expert_layers, 0), layers, [&](int count) {
                    fitted.placement.cpu_expert_layers = count;
                    return fits();
                });
            notes.push_back(
                fmt::format("routed experts of the first {} layers stay on the CPU: they do not fit the GPUs "
                            "(--n-cpu-moe {} says so)",
                            fitted.placement.cpu_expert_layers, fitted.placement.cpu_expert_layers));
        } else {
            const int fewer = least(0, layers, [&](int count) {
                fitted.placement.gpu_layers = layers - count;
                return fits();
            });
            fitted.placement.gpu_layers = layers - fewer;
            notes.push_back(
                fmt::format("{} of {} layers fit the GPUs, without their routed experts (-ngl {} --cpu-moe says so)",
                            fitted.placement.gpu_layers, layers, fitted.placement.gpu_layers));
        }
        plan = plan_once(model, registry, devices, fitted);
    }
    plan.notes.insert(plan.notes.begin(), notes.begin(), notes.end());
    return plan;
}

}  // namespace tessera
