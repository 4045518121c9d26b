#include "core/plan/make_plan.hpp"

#include "core/base/text.hpp"
#include "core/plan/asked_devices.hpp"
#include "core/plan/placement_rules.hpp"
#include "core/plan/search.hpp"

#include <utility>

namespace tessera {
namespace {

// The CPU and every device that a plugin owns, and the others.
std::vector<const tsr_device_info*> usable_devices(const Registry& registry, const Hardware& hardware,
                                                   std::vector<UnusableDevice>& others) {
    std::vector<const tsr_device_info*> devices;
    for (const tsr_device_info* device : hardware.devices()) {
        std::string why;
        if (devices.empty() || registry.find_provider(*device, &why)) {
            devices.push_back(device);
        } else {
            others.push_back({device->id, device->name, why.empty() ? "no plugin owns devices of its kind" : why});
        }
    }
    return devices;
}

// How much of the routed experts lies on the CPU; empty if nothing does.
std::string note_on_experts(const Graph& model, const Placement& placement) {
    const std::vector<bool> experts = find_experts(model);
    uint64_t on_cpu = 0, all = 0;
    for (StorageId id = 1; id < model.storage_count(); ++id) {
        if (!experts[id]) continue;
        all += model.storage(id).bytes;
        if (placement.storage_device[id] == 0) on_cpu += model.storage(id).bytes;
    }
    if (on_cpu == 0) return {};
    return fmt::format("{} of {} of routed experts lie on the CPU", size_text(on_cpu), size_text(all));
}

}  // namespace

Plan make_plan(const Graph& model, const Registry& registry, const Hardware& hardware, const ScheduleOptions& asked) {
    std::vector<UnusableDevice> unusable;
    const std::vector<const tsr_device_info*> devices = usable_devices(registry, hardware, unusable);
    ScheduleOptions options = asked;
    options.placement = of_usable(asked.placement, hardware, unusable);
    std::vector<std::string> notes;
    for (const UnusableDevice& device : unusable)
        notes.push_back(fmt::format("{} ({}) is not used: {}", device.id, device.name, device.why));
    Candidate found = search_placement(model, registry, devices, options);
    Plan plan = std::move(found.plan);
    plan.rules = placement_rules(model, found.placement, plan.devices);
    notes.insert(notes.end(), hardware.notes().begin(), hardware.notes().end());
    if (const std::string note = note_on_experts(model, found.placement); plan.devices.size() > 1 && !note.empty())
        notes.push_back(note);
    plan.notes.insert(plan.notes.begin(), notes.begin(), notes.end());
    plan.notes.insert(plan.notes.end(), found.placement.notes.begin(), found.placement.notes.end());
    return plan;
}

}  // namespace tessera
