#include "core/plan/fit.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/plan/placement.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace tessera {

bool on_one_card(const tsr_device_info& a, const tsr_device_info& b) {
    return a.index == b.index && std::string_view(a.kind) == b.kind;
}

tsr_device_info whole_card(Devices devices, DeviceIndex device) {
    tsr_device_info card = *devices[device];
    card.memory_bytes = card.free_memory_bytes = 0;
    for (const tsr_device_info* part : devices) {
        if (!on_one_card(*part, card)) continue;
        card.memory_bytes += part->memory_bytes;
        card.free_memory_bytes += part->free_memory_bytes;
    }
    return card;
}

uint64_t context_bytes(Devices devices, DeviceIndex device) {
    const tsr_device_info card = whole_card(devices, device);
    if (std::string_view(card.kind) != "cuda" || card.memory_bytes == 0) return 0;
    // By default a thread has 1 KiB of stack, which the driver allocates for as many threads as the card can hold: at
    // most 2048 a multiprocessor. The rest is code, the context's own data and what it keeps for calls of the device:
    // assumed, but for 9.0, where all was 538 MiB with 132 multiprocessors (H200, driver 580, 2026-11-27).
    constexpr uint64_t kMiB = 1 << 20, kStacks = 2 * kMiB;
    const uint64_t rest = (card.compute_capability >= 900 ? 280 : 150) * kMiB;
    const uint64_t bytes = std::min(card.memory_bytes / 8, rest + card.processors * kStacks);
    const double share = static_cast<double>(devices[device]->memory_bytes) / static_cast<double>(card.memory_bytes);
    return static_cast<uint64_t>(std::ceil(share * static_cast<double>(bytes)));
}

uint64_t usable_bytes(Devices devices, DeviceIndex index) {
    // Allocations of a GPU are rounded up; a host needs room for everything else that runs. Devices that have no
    // context of their own count what their driver takes in the same share.
    const tsr_device_info& device = *devices[index];
    const std::string_view kind = device.kind;
    const uint64_t margin = device.free_memory_bytes / (kind == "cpu" ? 50 : kind == "cuda" ? 64 : 32);
    return device.free_memory_bytes - std::min(margin + context_bytes(devices, index), device.free_memory_bytes);
}

std::optional<Notice> misfit(const Plan& plan, DeviceIndex device) {
    const DeviceMemory& memory = plan.memory[device];
    const uint64_t needed = memory.allocated(), usable = usable_bytes(plan.devices, device);
    if (needed <= usable) return std::nullopt;
    // All in one unit, so that they can be compared.
    const bool large = needed >= uint64_t{1} << 30;
    const auto size = [&](uint64_t bytes) {
        return fmt::format("{:.2f} {}", static_cast<double>(bytes) / (large ? 1 << 30 : 1 << 20),
                           large ? "GiB" : "MiB");
    };
    // The kernel that asks for all of the workspace, where that is most of the memory.
    const auto largest = std::ranges::max_element(
        plan.nodes, {}, [&](const PlannedNode& node) { return node.device == device ? node.workspace_bytes : 0; });
    const bool is_workspace =
        largest != plan.nodes.end() && largest->device == device && largest->workspace_bytes > needed / 2;
    const std::vector<bool> is_expert = find_experts(plan.graph);
    uint64_t experts = 0;
    for (const Instance& it : plan.instances) {
        if (it.storage && it.device == device && is_expert[it.storage]) experts += it.bytes;
    }
    const uint64_t context = context_bytes(plan.devices, device);
    Notice notice(
        fmt::format("{} needs {}, {} available{}: {} missing", plan.devices[device]->id, size(needed), size(usable),
                    context > 0 ? fmt::format(" beside {} for the driver's context", size(context)) : std::string(),
                    size(needed - usable)));
    if (is_workspace)
        notice.text += fmt::format("; {} are the workspace of the kernel {}", size(largest->workspace_bytes),
                                   printable(largest->kernel->name, 64));
    const auto suggest = [&](AdviceCode code, std::string value = {}) {
        notice.advice.push_back({code, std::move(value)});
    };
    if (device == 0 && plan.options.pack_weights != PackWeights::kNever && plan.options.map_weights &&
        memory.weights > 0)
        suggest(AdviceCode::kWeightsInPlace);
    if (device > 0 && experts > 0) suggest(AdviceCode::kExpertsOnCpu, size(experts));
    if (device > 0) suggest(AdviceCode::kFewerGpuLayers);
    if (memory.cache > 0) suggest(AdviceCode::kSmallerContext, size(memory.cache));
    if (memory.activations + memory.workspace > needed / 8) suggest(AdviceCode::kSmallerSteps);
    suggest(AdviceCode::kSmallerModel);
    return notice;
}

void check_fit(const Plan& plan) {
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        if (std::optional<Notice> notice = misfit(plan, device)) fail(TSR_DOES_NOT_FIT, std::move(*notice));
    }
}

}  // namespace tessera
