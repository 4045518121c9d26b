#include "core/plan/init_nodes.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/plan/arena.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/packing.hpp"
#include "core/plan/predict.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace tessera {
namespace {

class InitPlanner {
  public:
    InitPlanner(Plan& plan, const Registry& registry) : plan_(plan), registry_(registry) {
        for (InstanceId id = 1; id < plan.instances.size(); ++id) {
            const Instance& it = plan.instances[id];
            const Storage& storage = plan.graph.storage(it.storage);
            if (storage.role != TSR_ROLE_WEIGHT) continue;
            if (storage.derived) holders_[it.storage].push_back(id);
            if (it.layout.empty() && it.device != 0) resident_[{it.storage, it.device}] = id;
        }
    }

    void run() {
        std::deque<PlannedNode> on_host, on_devices;
        for (PlannedNode& host : plan_.init_nodes) {
            const std::set<DeviceIndex> devices = devices_of_results(host);
            bool left = devices.empty();
            for (const DeviceIndex device : devices) {
                std::optional<PlannedNode> there = device == 0 ? std::nullopt : on_device(host, device);
                left = left || !there;
                if (there) on_devices.push_back(std::move(*there));
            }
            if (!left) continue;
            bind_to_host(host);
            on_host.push_back(std::move(host));
        }
        plan_.init_nodes = std::move(on_host);
        std::ranges::move(on_devices, std::back_inserter(plan_.init_nodes));
    }

  private:
    const Node& node_of(const PlannedNode& planned) const { return plan_.graph.nodes()[planned.node]; }

    const std::vector<InstanceId>& holders(Value result) const {
        static const std::vector<InstanceId> kNowhere;
        const auto at = holders_.find(plan_.graph.storage_of(result));
        return at == holders_.end() ? kNowhere : at->second;
    }

    std::set<DeviceIndex> devices_of_results(const PlannedNode& planned) const {
        std::set<DeviceIndex> devices;
        for (const Value result : node_of(planned).outputs) {
            for (const InstanceId id : holders(result)) devices.insert(plan_.instances[id].device);
        }
        return devices;
    }

    // A canonical copy in loading memory.
    InstanceId loading_instance(StorageId storage, DeviceIndex device) {
        const auto [at, fresh] = loading_.try_emplace({storage, device}, 0);
        if (fresh) {
            Instance made;
            made.storage = storage;
            made.device = device;
            made.place = Place::kLoading;
            made.bytes = plan_.graph.storage(storage).bytes;
            plan_.instances.push_back(std::move(made));
            at->second = static_cast<InstanceId>(plan_.instances.size() - 1);
        }
        return at->second;
    }

    void bind_to_host(PlannedNode& planned) {
        const Node& node = node_of(planned);
        for (const Value value : node.inputs) {
            if (value && plan_.graph.storage(plan_.graph.storage_of(value)).derived)
                fail(TSR_UNSUPPORTED, "{} ({}): an init node on the host reads what another one made", node.name,
                     node.op);
        }
        for (const auto* list : {&node.inputs, &node.outputs}) {
            for (const Value value : *list)
                planned.operands.push_back(value ? loading_instance(plan_.graph.storage_of(value), 0) : 0);
        }
    }

    // Operands that are there already, or 0 for those that need loading memory; nothing if the host alone can make a
    // result.
    std::optional<std::vector<InstanceId>> operands_there(const Node& node, DeviceIndex device) const {
        std::vector<InstanceId> operands;
        const auto resident = [&](Value value) {
            const auto at = value ? resident_.find({plan_.graph.storage_of(value), device}) : resident_.end();
            return at == resident_.end() ? 0 : at->second;
        };
        for (const Value value : node.inputs) {
            const InstanceId id = resident(value);
            // What another init node made exists on devices alone.
            if (value && !id && plan_.graph.storage(plan_.graph.storage_of(value)).derived) return std::nullopt;
            operands.push_back(id);
        }
        for (const Value value : node.outputs) {
            for (const InstanceId id : holders(value)) {
                const Instance& it = plan_.instances[id];
                if (it.device == device && Packing(plan_, registry_, it).on == PackedOn::kHost) return std::nullopt;
            }
            operands.push_back(resident(value));
        }
        return operands;
    }

    std::optional<PlannedNode> on_device(const PlannedNode& host, DeviceIndex device) {
        const Node& node = node_of(host);
        const auto there = operands_there(node, device);
        if (!there) return std::nullopt;
        const NodeView view(plan_.graph, node);
        KernelCandidates kernels = find_kernels(view.abi(), *plan_.devices[device], registry_);
        std::erase_if(kernels.able, [&](const KernelCandidate& kernel) {
            for (uint32_t i = 0; i < view.operand_count(); ++i) {
                if (!kernel.accepts(i, "")) return true;
            }
            return false;
        });
        if (kernels.able.empty()) return std::nullopt;
        const KernelCandidate& kernel = kernels.able.front();
        PlannedNode planned;
        planned.node = host.node;
        planned.device = device;
        planned.kernel = kernel.kernel;
        planned.variant = printable(kernel.plan.reason, sizeof kernel.plan.reason);
        planned.estimate = estimate_of(kernel.plan);
        planned.workspace_bytes = kernel.plan.workspace_bytes;
        planned.rejected = std::move(kernels.unable);
        double copied = 0, results = 0;  // bytes: of inputs to the device; of results, had the host made them
        uint32_t i = 0;
        for (const auto* list : {&node.inputs, &node.outputs}) {
            for (const Value value : *list) {
                const InstanceId id = (*there)[i++];
                const double bytes =
                    value ? static_cast<double>(plan_.graph.storage(plan_.graph.storage_of(value)).bytes) : 0;
                if (list == &node.outputs) {
                    results += bytes;
                } else if (!id) {
                    copied += bytes;
                }
            }
        }
        const double link = plan_.devices[device]->link_bandwidth;
        const auto copy_seconds = [&](double bytes) {
            return bytes > 0 ? kCopySeconds + (link > 0 ? bytes / link : 0) : 0;
        };
        if (planned.estimate.seconds_all_rows + copy_seconds(copied) >
            host.estimate.seconds_all_rows + copy_seconds(results))
            return std::nullopt;
        return with_memory(std::move(planned), *there);
    }

    // With loading memory for what is not there; nothing if there is no room.
    std::optional<PlannedNode> with_memory(PlannedNode planned, const std::vector<InstanceId>& there) {
        const Node& node = node_of(planned);
        const size_t instances = plan_.instances.size();
        std::vector<std::pair<StorageId, DeviceIndex>> made;
        for (size_t i = 0; i < there.size(); ++i) {
            const Value value = i < node.inputs.size() ? node.inputs[i] : node.outputs[i - node.inputs.size()];
            InstanceId id = there[i];
            if (!id && value) {
                const StorageId storage = plan_.graph.storage_of(value);
                id = loading_instance(storage, planned.device);
                if (id >= instances) made.emplace_back(storage, planned.device);
            }
            planned.operands.push_back(id);
        }
        DeviceMemory& memory = plan_.memory[planned.device];
        const uint64_t bytes = init_memory(plan_, planned).bytes;
        if (bytes > std::max(memory.activations, memory.workspace)) {
            for (const auto& key : made) loading_.erase(key);
            plan_.instances.resize(instances);
            return std::nullopt;
        }
        memory.deriving = std::max(memory.deriving, bytes);
        return planned;
    }

    Plan& plan_;
    const Registry& registry_;
    std::map<StorageId, std::vector<InstanceId>> holders_;  // of results
    std::map<std::pair<StorageId, DeviceIndex>, InstanceId> resident_, loading_;
};

}  // namespace

InitMemory init_memory(const Plan& plan, const PlannedNode& node) {
    constexpr std::string_view kWhat = "bytes for init nodes";
    InitMemory memory;
    memory.bytes = checked_align_up(sizeof(tsr_range) * TSR_RANGE_COUNT, kDeviceAlignment, kWhat);
    std::map<InstanceId, uint64_t> places;
    for (const InstanceId id : node.operands) {
        uint64_t offset = 0;
        if (id && plan.instances[id].place == Place::kLoading) {
            const auto [at, fresh] = places.try_emplace(id, memory.bytes);
            offset = at->second;
            if (fresh)
                memory.bytes = checked_align_up(checked_add(memory.bytes, plan.instances[id].bytes, kWhat),
                                                kDeviceAlignment, kWhat);
        }
        memory.operands.push_back(offset);
    }
    memory.workspace = memory.bytes;
    memory.bytes = checked_align_up(checked_add(memory.bytes, node.workspace_bytes, kWhat), kDeviceAlignment, kWhat);
    return memory;
}

bool is_made_there(const Plan& plan, const Instance& instance) {
    if (instance.device == 0 || !plan.graph.storage(instance.storage).derived) return false;
    return std::ranges::any_of(plan.init_nodes, [&](const PlannedNode& planned) {
        return planned.device == instance.device &&
               std::ranges::any_of(plan.graph.nodes()[planned.node].outputs,
                                   [&](Value result) { return plan.graph.storage_of(result) == instance.storage; });
    });
}

void plan_init_nodes(Plan& plan, const Registry& registry) {
    if (!plan.init_nodes.empty()) InitPlanner(plan, registry).run();
}

}  // namespace tessera
