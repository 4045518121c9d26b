#include "core/run/deferred.hpp"

#include "core/base/seconds.hpp"
#include "core/run/each_on_team.hpp"
#include "core/run/fetch_groups.hpp"

#include <algorithm>
#include <chrono>

namespace tessera {

DeferredWeights::DeferredWeights(const Plan& plan, const Registry& registry, PlanMemory& memory, Team& team)
    : plan_(plan), registry_(registry), memory_(memory), team_(team), waits_(plan.instances.size()) {
    for (const InstanceId id : plan.deferred) {
        waits_[id] = true;
        progress_.total_bytes += plan.graph.storage(plan.instances[id].storage).bytes;
    }
}

InstanceId DeferredWeights::pack_next(const WeightSource& source) {
    const auto begin = std::chrono::steady_clock::now();
    const InstanceId id = plan_.deferred[next_];
    const Instance& instance = plan_.instances[id];
    const Storage& weight = plan_.graph.storage(instance.storage);
    const Packing packing(plan_, registry_, instance);
    auto* to = static_cast<std::byte*>(memory_.address(instance));
    const uint64_t groups = packing.groups(), at_once = packing.groups_of(kLoadingPiece);
    each_on_team(team_, 0, (groups + at_once - 1) / at_once, [&](uint32_t, size_t i) {
        const uint64_t first = i * at_once;
        fetch_groups(source, registry_, weight, packing, first, std::min(at_once, groups - first), {},
                     [&](uint64_t group, std::span<const std::byte> rows) {
                         packing.pack(rows, to + group * packing.packed_bytes);
                     });
    });
    source.release(weight.name, 0, weight.bytes);  // pages that two pieces share
    waits_[id] = false;
    progress_.done_bytes += weight.bytes;
    progress_.seconds += seconds_since(begin);
    ++next_;
    return id;
}

}  // namespace tessera
