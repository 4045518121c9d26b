#include "core/run/work_text.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera {
namespace {

// What is in a storage: the result of the node that computes it.
std::string storage_text(const Plan& plan, StorageId id) {
    for (const Node& node : plan.graph.nodes()) {
        if (node.stage != TSR_STAGE_RUN) continue;
        for (const Value output : node.outputs) {
            if (plan.graph.storage_of(output) == id) return "the result of " + node_text(node);
        }
    }
    return plan.graph.storage(id).name;
}

}  // namespace

std::string node_text(const Node& node) {
    return node.layer < 0 ? fmt::format("{} ({})", node.name, node.op)
                          : fmt::format("{} ({}, layer {})", node.name, node.op, node.layer);
}

std::string nodes_text(const Plan& plan, uint32_t first, uint32_t count) {
    const auto one = [&](uint32_t index) { return node_text(plan.graph.nodes()[plan.nodes[index].node]); };
    return count > 1 ? one(first) + " to " + one(first + count - 1) : one(first);
}

std::string copy_text(const Plan& plan, const Action& action, const std::string& bytes) {
    const char* const to = plan.devices[plan.step.device_of(action)]->id;
    if (action.from == 0) return fmt::format("copy of the inputs of a step from CPU to {}, {}", to, bytes);
    const auto device = [&](InstanceId id) { return plan.devices[plan.instances[id].device]->id; };
    return fmt::format("copy of {} from {} to {}, {}", storage_text(plan, plan.instances[action.from].storage),
                       device(action.peer ? action.peer : action.from), device(action.to), bytes);
}

}  // namespace tessera
