#include "core/run/memory.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/hardware/hardware.hpp"
#include "core/plan/fit.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr uint64_t kPage = 4096;

void touch_pages(std::byte* data, uint64_t bytes) {
    for (uint64_t at = 0; at < bytes; at += kPage) data[at] = std::byte{0};
}

uint64_t context_of(const tsr_device_info& card) {
    const tsr_device_info* const one[] = {&card};
    return context_bytes(one, 0);
}

uint64_t usable_of(const tsr_device_info& card) {
    const tsr_device_info* const one[] = {&card};
    return usable_bytes(one, 0);
}

// What the driver has free now may be less than when the plan was made: other processes use the card as well, and the
// context that has been made since takes some. Nothing has been allocated yet. `before`: free before a device of the
// card was opened, where the driver says it.
void check_free_memory(const Plan& plan, DeviceIndex index, const OpenDevice& device, std::optional<uint64_t> before) {
    const std::optional<DriverMemory> memory = device.memory();
    if (!memory) return;
    // A driver counts the memory of the card, of which the device may be a part.
    const bool is_part = memory->total > device.info().memory_bytes;
    const tsr_device_info card = is_part ? whole_card(plan.devices, index) : device.info();
    uint64_t wanted = 0, parts = 0;
    std::string ids;
    for (DeviceIndex i = 1; i < plan.devices.size(); ++i) {
        if (i != index && (!is_part || !on_one_card(*plan.devices[i], card))) continue;
        ++parts;
        if (plan.memory[i].allocated() == 0) continue;
        wanted += plan.memory[i].allocated();
        ids += (ids.empty() ? "" : " and ") + std::string(plan.devices[i]->id);
    }
    if (wanted <= memory->free) return;
    const uint64_t planned = card.free_memory_bytes;
    const auto fell = [](uint64_t from, uint64_t to) { return from - std::min(from, to); };
    const uint64_t others = before ? fell(planned, *before) : 0;
    const std::string who =
        !before ? fmt::format("other processes, or the driver's own context, have taken {}",
                              size_text(fell(planned, memory->free)))
                : fmt::format("the driver's own context has taken {}{}", size_text(fell(*before, memory->free)),
                              others > 0 ? fmt::format(", other processes {}", size_text(others)) : "");
    // Another plan knows what other processes have taken by now. What it would still leave too little for is the
    // context.
    tsr_device_info again = card;
    again.free_memory_bytes = std::min(planned, before.value_or(memory->free));
    const bool fits = usable_of(again) <= memory->free;
    // A margin takes from the memory of each device as a whole, by which the room for the context is limited.
    tsr_device_info rest = card;
    rest.memory_bytes = std::min(card.memory_bytes, memory->free);
    const uint64_t missing = fell(again.free_memory_bytes, memory->free + context_of(rest)) / parts;
    Notice notice(fmt::format("{} ({}): the plan takes {}, but only {} are free now, {} when it was made: {}", ids,
                              printable(card.name), size_text(wanted), size_text(memory->free), size_text(planned),
                              who));
    if (others > 0 || !before) notice.advice.push_back({AdviceCode::kFreeTheCard, ""});
    notice.advice.push_back(fits ? Advice{AdviceCode::kStartAgain, ""}
                                 : Advice{AdviceCode::kLargerMargin, std::to_string((missing >> 20) + 1)});
    fail(TSR_DOES_NOT_FIT, std::move(notice));
}

}  // namespace

PlanMemory::PlanMemory(const Plan& plan, const Registry& registry)
    : plan_(plan),
      devices_(plan.devices.size()),
      arenas_(plan.devices.size()),
      free_before_(free_gpu_memory(plan.devices)) {
    const DeviceMemory& host = plan.memory[0];
    host_weights_ = HostBlock(host.weights, "weights");
    host_cache_ = HostBlock(host.cache, "the cache");
    host_activations_ = CopiedBlock(host.activations, "activations");
    host_workspace_ = HostBlock(host.workspace, "workspace");
    host_staging_ = CopiedBlock(host.staging, "staging");
    host_streaming_ = CopiedBlock(host.streaming, "streaming");
    arenas_[0].weights = host_weights_.data();
    arenas_[0].cache = host_cache_.data();
    arenas_[0].activations = host_activations_.data;
    arenas_[0].workspace = host_workspace_.data();
    for (DeviceIndex i = 1; i < plan.devices.size(); ++i) {
        if (plan.memory[i].allocated() == 0) continue;  // nothing was placed there: it is not opened
        const tsr_device_provider* provider = registry.find_provider(*plan.devices[i]);
        if (!provider) fail(TSR_INTERNAL, "{} has lost its plugin", plan.devices[i]->id);
        devices_[i] = std::make_unique<OpenDevice>(*provider, *plan.devices[i], registry.owner(*provider).table->name);
    }
    for (DeviceIndex i = 1; i < devices_.size(); ++i) {
        if (devices_[i]) check_free_memory(plan, i, *devices_[i], free_before_[i]);
    }
    for (DeviceIndex i = 1; i < devices_.size(); ++i) {
        if (!devices_[i]) continue;
        const DeviceMemory& bytes = plan.memory[i];
        Arenas& arenas = arenas_[i];
        arenas.weights = devices_[i]->allocate(bytes.weights);
        arenas.cache = devices_[i]->allocate(bytes.cache);
        arenas.activations = devices_[i]->allocate(bytes.activations);
        arenas.workspace = devices_[i]->allocate(bytes.workspace);
        arenas.streaming = devices_[i]->allocate(bytes.streaming);
        arenas.loading = devices_[i]->allocate(bytes.loading);
        arenas.packing = bytes.loading > 0                    ? arenas.loading
                         : bytes.activations >= bytes.packing ? arenas.activations
                                                              : arenas.workspace;
        arenas.deriving = bytes.activations >= bytes.deriving ? arenas.activations : arenas.workspace;
    }
}

void PlanMemory::release_loading() noexcept {
    for (DeviceIndex i = 1; i < devices_.size(); ++i) {
        if (devices_[i]) devices_[i]->release(std::exchange(arenas_[i].loading, nullptr));
        arenas_[i].packing = nullptr;
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
            return (instance.place == Place::kStaging ? host_staging_.data
                                                      : static_cast<std::byte*>(arenas.activations)) +
                   instance.offset;
    }
}

std::byte* PlanMemory::input_block(DeviceIndex device, uint32_t slot) const {
    const uint64_t offset = device == 0 ? slot * plan_.input_block.bytes : 0;
    return static_cast<std::byte*>(arenas_[device].activations) + offset;
}

bool PlanMemory::is_first_of_card(DeviceIndex device) const {
    for (DeviceIndex i = 1; i < device; ++i) {
        if (devices_[i] && on_one_card(*plan_.devices[i], *plan_.devices[device])) return false;
    }
    return devices_[device] != nullptr;
}

std::vector<std::string> PlanMemory::context_notes() const {
    std::vector<std::string> notes;
    for (DeviceIndex i = 1; i < devices_.size(); ++i) {
        if (!is_first_of_card(i) || !free_before_[i]) continue;
        const std::optional<DriverMemory> memory = devices_[i]->memory();
        uint64_t own = 0, left = 0;  // of all devices that are parts of the card
        for (DeviceIndex j = 1; j < devices_.size(); ++j) {
            if (!on_one_card(*plan_.devices[i], *plan_.devices[j])) continue;
            own += plan_.memory[j].allocated() - plan_.memory[j].loading;
            left += context_bytes(plan_.devices, j);
        }
        if (!memory || *free_before_[i] <= memory->free + own + left) continue;
        notes.push_back(
            fmt::format("{}: the driver's context and code, or other processes since, take {}, where {} "
                        "were left for it",
                        plan_.devices[i]->id, size_text(*free_before_[i] - memory->free - own), size_text(left)));
    }
    return notes;
}

void PlanMemory::touch_host() {
    for (const HostBlock* block : {&host_cache_, &host_workspace_}) touch_pages(block->data(), block->size());
    for (const CopiedBlock* block : {&host_activations_, &host_staging_, &host_streaming_})
        touch_pages(block->data, block->bytes);
}

// `replaceable`: no other device has page-locked the block.
bool PlanMemory::CopiedBlock::pin(OpenDevice& device, bool replaceable) {
    if (bytes == 0) return true;
    // The system commits whole pages.
    if (device.register_host(data, (bytes + kPage - 1) / kPage * kPage)) return true;
    void* pinned = replaceable ? device.allocate_pinned(bytes) : nullptr;
    if (!pinned) return false;
    block = HostBlock();
    data = static_cast<std::byte*>(pinned);
    std::memset(data, 0, bytes);  // as memory of the host is: the first steps read inputs that nothing wrote
    return true;
}

bool PlanMemory::pin_host() {
    // Memory that one device has page-locked is so for all of its interop.
    std::set<std::string_view> done;
    bool all = true;
    for (const auto& device : devices_) {
        if (!device || !done.insert(device->abi()->interop).second) continue;
        for (CopiedBlock* block : {&host_activations_, &host_staging_, &host_streaming_})
            all = block->pin(*device, done.size() == 1) && all;
    }
    arenas_[0].activations = host_activations_.data;
    return all;
}

bool PlanMemory::lock_host() const {
    bool all = true;
    for (const HostBlock* block : {&host_weights_, &host_cache_, &host_activations_.block, &host_workspace_,
                                   &host_staging_.block, &host_streaming_.block}) {
        all = block->lock() && all;
    }
    return all;
}

}  // namespace tessera
