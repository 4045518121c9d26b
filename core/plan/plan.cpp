#include "core/plan/plan.hpp"

#include "core/base/checked.hpp"

#include <algorithm>

namespace tessera {
namespace {

constexpr uint64_t kHostAlignment = 64, kLoadingAlignment = 256;

}  // namespace

bool Plan::is_output(InstanceId id) const {
    const Instance& it = instances[id];
    if (it.storage == 0 || it.device != 0 || it.staging || !it.layout.empty()) return false;
    return std::ranges::any_of(graph.outputs(),
                               [&](const auto& output) { return graph.storage_of(output.second) == it.storage; });
}

uint64_t loading_bytes(const Plan& plan) {
    uint64_t most = kLoadingChunk * std::max<uint64_t>(plan.devices[0]->threads, 1);
    for (const PlannedNode& node : plan.init_nodes) {
        uint64_t bytes = node.workspace_bytes;
        for (const InstanceId id : node.operands) {
            bytes =
                checked_add(bytes, checked_align_up(plan.instances[id].bytes, kHostAlignment, "loading"), "loading");
        }
        most = std::max(most, checked_align_up(bytes, kLoadingAlignment, "loading"));
    }
    return most;
}

}  // namespace tessera
