#include "core/plan/plan.hpp"

#include <algorithm>

namespace tessera {
bool Plan::is_output(InstanceId id) const {
    const Instance& it = instances[id];
    if (it.storage == 0 || it.device != 0 || it.place == Place::kStaging || !it.layout.empty()) return false;
    return std::ranges::any_of(graph.outputs(),
                               [&](const auto& output) { return graph.storage_of(output.second) == it.storage; });
}

uint64_t Plan::cache_bytes(const CacheGroup& group, DeviceIndex device) const {
    uint64_t bytes = 0;
    for (const Instance& it : instances) {
        if (it.device == device && std::ranges::find(group.caches, it.storage) != group.caches.end()) bytes += it.bytes;
    }
    return bytes;
}

}  // namespace tessera
