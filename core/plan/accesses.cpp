#include "core/plan/accesses.hpp"

#include <algorithm>

namespace tessera {
namespace {

// Block of inputs of device d: kBlocks + d.
constexpr uint32_t kBlocks = 1u << 31;

enum ArenaKind : uint32_t { kActivations, kCache, kStaging, kInputBlocks, kWorkspace, kArenaKinds };
constexpr const char* kArenaNames[] = {"activations", "cache", "staging", "inputs", "workspace"};

uint32_t arena_of(DeviceIndex device, ArenaKind kind) {
    return device * kArenaKinds + kind;
}

void add_nodes(const Plan& plan, const Action& action, std::vector<Touch>& touches) {
    for (uint32_t i = action.first; i < action.first + action.count; ++i) {
        const PlannedNode& node = plan.nodes[i];
        const size_t inputs = plan.graph.nodes()[node.node].inputs.size();
        for (size_t k = 0; k < node.operands.size(); ++k) {
            const InstanceId id = node.operands[k];
            if (id == 0) continue;
            const tsr_role role = plan.graph.storage(plan.instances[id].storage).role;
            if (role == TSR_ROLE_ACTIVATION || role == TSR_ROLE_CACHE) touches.push_back({id, k >= inputs});
        }
    }
    touches.push_back({kBlocks + plan.step.device_of(action), false});
}

}  // namespace

std::vector<Touch> touches_of(const Plan& plan, const Action& action) {
    std::vector<Touch> touches;
    switch (action.kind) {
        case ActionKind::kInputs:
            touches.push_back({kBlocks, true});
            break;
        case ActionKind::kNodes:
            add_nodes(plan, action, touches);
            break;
        case ActionKind::kUpload:
            touches.push_back({action.from ? action.from : kBlocks, false});
            if (action.peer) touches.push_back({action.peer, false});
            touches.push_back({action.to ? action.to : kBlocks + plan.step.device_of(action), true});
            break;
        case ActionKind::kDownload:
            touches.push_back({action.from, false});
            touches.push_back({action.to, true});
            break;
        case ActionKind::kOutputs:
            for (InstanceId id = 1; id < plan.instances.size(); ++id) {
                if (plan.is_output(id)) touches.push_back({id, false});
            }
            break;
    }
    std::ranges::sort(touches);
    std::vector<Touch> merged;
    for (const Touch& touch : touches) {
        if (!merged.empty() && merged.back().what == touch.what) {
            merged.back().writes |= touch.writes;
        } else {
            merged.push_back(touch);
        }
    }
    return merged;
}

Access access_of(const Plan& plan, const Touch& touch, uint32_t slot) {
    if (touch.what >= kBlocks) {
        const DeviceIndex device = touch.what - kBlocks;
        const uint64_t begin = device == 0 ? slot * plan.input_block.bytes : 0;
        return {arena_of(device, kInputBlocks), begin, begin + plan.input_block.bytes, touch.writes};
    }
    const Instance& it = plan.instances[touch.what];
    const bool cache = plan.graph.storage(it.storage).role == TSR_ROLE_CACHE;
    const ArenaKind kind = it.place == Place::kStaging ? kStaging : cache ? kCache : kActivations;
    return {arena_of(it.device, kind), it.offset, it.offset + it.bytes, touch.writes};
}

Access workspace_of(const Plan& plan, const Action& action) {
    if (action.kind != ActionKind::kNodes) return {};
    const DeviceIndex device = plan.step.device_of(action);
    return {arena_of(device, kWorkspace), 0, plan.memory[device].workspace, true};
}

std::string arena_name(const Plan& plan, uint32_t arena) {
    return fmt::format("{}, {}", plan.devices[arena / kArenaKinds]->id, kArenaNames[arena % kArenaKinds]);
}

bool conflict_in_step(const std::vector<Touch>& a, const std::vector<Touch>& b) {
    for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
        if (x->what < y->what) {
            ++x;
        } else if (y->what < x->what) {
            ++y;
        } else {
            if (x->writes || y->writes) return true;
            ++x, ++y;
        }
    }
    return false;
}

}  // namespace tessera
