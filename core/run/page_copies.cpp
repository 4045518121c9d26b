#include "core/run/page_copies.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace tessera {

PageCopies::PageCopies(const Plan& plan, const PlanMemory& memory, const Tracks& tracks)
    : plan_(plan), memory_(memory), tracks_(tracks), instances_(plan.cache_groups.size()) {
    for (size_t group = 0; group < plan.cache_groups.size(); ++group) {
        const std::vector<StorageId>& caches = plan.cache_groups[group].caches;
        for (InstanceId id = 1; id < plan.instances.size(); ++id) {
            if (std::ranges::find(caches, plan.instances[id].storage) != caches.end()) instances_[group].push_back(id);
        }
        // Pages in files do not depend on which devices the caches lie on.
        std::ranges::stable_sort(instances_[group], {}, [&](InstanceId id) -> const std::string& {
            return plan.graph.storage(plan.instances[id].storage).name;
        });
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

uint64_t PageCopies::page_bytes(uint32_t group) const {
    uint64_t bytes = 0;
    for (const InstanceId id : instances_[group]) bytes += plan_.instances[id].bytes / plan_.cache_groups[group].pages;
    return bytes;
}

// copy(device, queue, address, offset, bytes) for the part of each cache; then all queues are waited for. The host has
// no device.
template <typename Copy>
void PageCopies::each_part(uint32_t group, uint32_t page, Copy&& copy) const {
    const uint32_t pages = plan_.cache_groups[group].pages;
    if (page >= pages) fail(TSR_INVALID_ARGUMENT, "page {} of a cache of {}", page, pages);
    std::set<DeviceIndex> used;
    const auto name_it = [&](const Instance& instance, uint64_t bytes, auto&& body) {
        try {
            body();
        } catch (const Error& error) {
            for (const DeviceIndex device : used) memory_.device(device)->drain(tracks_.compute_queue(device));
            fail(error.code(), "copy of a page of {}, {} bytes: {}", plan_.graph.storage(instance.storage).name, bytes,
                 error.what());
        }
    };
    uint64_t offset = 0;
    for (const InstanceId id : instances_[group]) {
        const Instance& instance = plan_.instances[id];
        const uint64_t bytes = instance.bytes / pages;
        std::byte* const at = static_cast<std::byte*>(memory_.address(instance)) + page * bytes;
        OpenDevice* const device = memory_.device(instance.device);
        if (device) used.insert(instance.device);
        name_it(instance, bytes,
                [&] { copy(device, device ? tracks_.compute_queue(instance.device) : nullptr, at, offset, bytes); });
        offset += bytes;
    }
    for (const DeviceIndex device : used)
        name_it(plan_.instances[instances_[group].front()], offset,
                [&] { memory_.device(device)->wait_queue(tracks_.compute_queue(device)); });
}

void PageCopies::download(uint32_t group, uint32_t page, std::span<std::byte> to) const {
    each_part(group, page, [&](OpenDevice* device, tsr_queue queue, std::byte* at, uint64_t offset, uint64_t bytes) {
        std::byte* const own = to.subspan(offset, bytes).data();
        device ? device->download(queue, own, at, bytes) : void(std::copy_n(at, bytes, own));
    });
}

void PageCopies::upload(uint32_t group, uint32_t page, std::span<const std::byte> from) const {
    each_part(group, page, [&](OpenDevice* device, tsr_queue queue, std::byte* at, uint64_t offset, uint64_t bytes) {
        const std::byte* const own = from.subspan(offset, bytes).data();
        device ? device->upload(queue, at, own, bytes) : void(std::copy_n(own, bytes, at));
    });
}

}  // namespace tessera
