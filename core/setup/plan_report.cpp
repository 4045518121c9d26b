#include "core/setup/plan_report.hpp"

#include "core/plan/fit.hpp"

#include <algorithm>

namespace tessera {

std::vector<Excess> excess_of(const Plan& plan) {
    std::vector<Excess> all;
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        const uint64_t needed = plan.memory[device].allocated(), usable = usable_bytes(plan.devices, device);
        if (needed > usable) all.push_back({device, needed - usable});
    }
    return all;
}

uint64_t minimum_scratch(const Plan& plan) {
    uint64_t least = 0;
    for (const PlannedNode& node : plan.nodes) least = std::max(least, node.minimum_scratch_bytes);
    return least;
}

uint64_t mapped_excess(const Plan& plan) {
    const uint64_t needed = plan.memory[0].allocated() + plan.memory[0].mapped, usable = usable_bytes(plan.devices, 0);
    return needed > usable ? std::min(plan.memory[0].mapped, needed - usable) : 0;
}

}  // namespace tessera
