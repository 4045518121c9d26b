#include "core/run/page_copies.hpp"

#include "core/base/error.hpp"

#include <algorithm>

namespace tessera {

PageCopies::PageCopies(const Plan& plan, const PlanMemory& memory, const Tracks& tracks)
    : plan_(plan), memory_(memory), tracks_(tracks), instances_(plan.cache_groups.size()) {
    for (size_t group = 0; group < plan.cache_groups.size(); ++group) {
        const std::vector<StorageId>& caches = plan.cache_groups[group].caches;
        for (InstanceId id = 1; id < plan.instances.size(); ++id) {
            if (std::ranges::find(caches, plan.instances[id].storage) != caches.end()) instances_[group].push_back(id);
        }
    }
}

void PageCopies::enqueue(uint32_t group, std::span<const std::pair<uint32_t, uint32_t>> pages) const {
    for (const InstanceId id : instances_[group]) {
        const Instance& instance = plan_.instances[id];
        auto* base = static_cast<std::byte*>(memory_.address(instance));
        const uint64_t bytes = instance.bytes / plan_.cache_groups[group].pages;
        OpenDevice* const device = memory_.device(instance.device);
        for (const auto& [from, to] : pages) {
            if (!device) {
                std::copy_n(base + from * bytes, bytes, base + to * bytes);
                continue;
            }
            try {
                device->copy(tracks_.compute_queue(instance.device), base + to * bytes, base + from * bytes, bytes);
            } catch (const Error& error) {
                fail(error.code(), "copy of a page of {}, {} bytes: {}", plan_.graph.storage(instance.storage).name,
                     bytes, error.what());
            }
        }
    }
}

}  // namespace tessera
