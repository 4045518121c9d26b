#include "core/run/memory.hpp"

#include "core/base/error.hpp"

#include <set>
#include <string_view>

namespace tessera {
namespace {

constexpr uint64_t kPage = 4096;

}  // namespace

PlanMemory::PlanMemory(const Plan& plan, const Registry& registry)
    : plan_(plan), devices_(plan.devices.size()), arenas_(plan.devices.size()) {
    const DeviceMemory& host = plan.memory[0];
    host_weights_ = HostBlock(host.weights, "weights");
    host_cache_ = HostBlock(host.cache, "the cache");
    host_activations_ = HostBlock(host.activations, "activations");
    host_workspace_ = HostBlock(host.workspace, "workspace");
    host_staging_ = HostBlock(host.staging, "staging");
    arenas_[0] = {host_weights_.data(), host_cache_.data(), host_activations_.data(), host_workspace_.data()};
    for (DeviceIndex i = 1; i < plan.devices.size(); ++i) {
        const DeviceMemory& bytes = plan.memory[i];
        if (bytes.allocated() == 0) continue;  // nothing was placed there: leave it to others
        const tsr_device_provider* provider = registry.find_provider(*plan.devices[i]);
        if (!provider) fail(TSR_INTERNAL, "{} has lost its plugin", plan.devices[i]->id);
        devices_[i] = std::make_unique<OpenDevice>(*provider, *plan.devices[i], registry.owner(*provider).table->name);
        arenas_[i] = {devices_[i]->allocate(bytes.weights), devices_[i]->allocate(bytes.cache),
                      devices_[i]->allocate(bytes.activations), devices_[i]->allocate(bytes.workspace)};
    }
}

void* PlanMemory::address(const Instance& instance, uint32_t slot) const {
    const Arenas& arenas = arenas_[instance.device];
    switch (plan_.graph.storage(instance.storage).role) {
        case TSR_ROLE_WEIGHT:
            return static_cast<std::byte*>(arenas.weights) + instance.offset;
        case TSR_ROLE_CACHE:
            return static_cast<std::byte*>(arenas.cache) + instance.offset;
        case TSR_ROLE_INPUT:
            return input_block(instance.device, slot) + instance.offset;
        default:
            return (instance.staging ? host_staging_.data() : static_cast<std::byte*>(arenas.activations)) +
                   instance.offset;
    }
}

std::byte* PlanMemory::input_block(DeviceIndex device, uint32_t slot) const {
    const uint64_t offset = device == 0 ? slot * plan_.input_block.bytes : 0;
    return static_cast<std::byte*>(arenas_[device].activations) + offset;
}

void PlanMemory::touch_host() {
    for (HostBlock* block : {&host_cache_, &host_activations_, &host_workspace_, &host_staging_}) {
        for (uint64_t at = 0; at < block->size(); at += kPage) block->data()[at] = std::byte{0};
    }
}

bool PlanMemory::register_host() {
    // Memory that one device has page-locked is so for all of its interop.
    std::set<std::string_view> done;
    bool all = true;
    for (const auto& device : devices_) {
        if (!device || !done.insert(device->abi()->interop).second) continue;
        for (const HostBlock* block : {&host_activations_, &host_staging_}) {
            const uint64_t pages = (block->size() + kPage - 1) / kPage * kPage;  // that the system gave
            if (pages > 0) all = device->register_host(block->data(), pages) && all;
        }
    }
    return all;
}

bool PlanMemory::lock_host() const {
    bool all = true;
    for (const HostBlock* block :
         {&host_weights_, &host_cache_, &host_activations_, &host_workspace_, &host_staging_}) {
        all = block->lock() && all;
    }
    return all;
}

}  // namespace tessera
