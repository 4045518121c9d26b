#include "core/plan/plan.hpp"

#include "core/base/checked.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/plan/assemble.hpp"
#include "core/plan/layouts.hpp"
#include "core/plan/lower.hpp"
#include "core/plan/placement.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace tessera {
namespace {

// The CPU and every device that a plugin owns.
std::vector<const tsr_device_info*> usable_devices(const Registry& registry, const Hardware& hardware,
                                                   std::vector<std::string>& notes) {
    std::vector<const tsr_device_info*> devices;
    for (const tsr_device_info* device : hardware.devices()) {
        std::string why;
        if (devices.empty() || registry.find_provider(*device, &why)) {
            devices.push_back(device);
        } else {
            notes.push_back(fmt::format("{} ({}) not used: {}", device->id, device->name,
                                        why.empty() ? "no plugin owns devices of its kind" : why));
        }
    }
    return devices;
}

Plan plan_once(const Graph& model, const Registry& registry, const std::vector<const tsr_device_info*>& devices,
               const ScheduleOptions& options) {
    const Placement placement = place(model, devices, options, 0);
    LoweredGraph lowered = lower_graph(model, placement, registry, devices, options);
    std::deque<ChosenNode> chosen =
        choose_kernels(lowered, registry, devices, options.pack_weights != PackWeights::kNever);
    Plan plan = assemble(std::move(lowered), std::move(chosen), registry, devices, options);
    plan.notes.insert(plan.notes.end(), placement.notes.begin(), placement.notes.end());
    return plan;
}

bool fits_gpus(const Plan& plan) {
    for (DeviceIndex device = 1; device < plan.devices.size(); ++device) {
        if (plan.memory[device].allocated() > usable_bytes(*plan.devices[device])) return false;
    }
    return true;
}

// The least value in [low, high] for which `fits` holds, given that it holds for `high` and grows monotonically.
template <typename Fits>
int least(int low, int high, Fits&& fits) {
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (fits(middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

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

uint64_t usable_bytes(const tsr_device_info& device) {
    // A GPU's driver keeps some for itself beyond what it reports; a host needs room for everything else that runs.
    const uint64_t margin = device.free_memory_bytes / (std::string_view(device.kind) == "cpu" ? 50 : 32);
    return device.free_memory_bytes - margin;
}

std::string why_no_fit(const Plan& plan, DeviceIndex device) {
    const DeviceMemory& memory = plan.memory[device];
    const uint64_t needed = memory.allocated(), usable = usable_bytes(*plan.devices[device]);
    if (needed <= usable) return "";
    std::string help;
    if (device > 0) {
        help = "fewer layers there (-ngl, -ts), --cpu-moe, ";
    } else if (plan.options.pack_weights != PackWeights::kNever && plan.options.map_weights && memory.weights > 0) {
        help = "-nr (weights are used in the mapped file), ";
    }
    const bool context_helps = memory.weights <= usable && memory.cache > 0;
    return fmt::format("{} needs {}, {} available ({} bytes missing). Try {}{}a smaller model",
                       plan.devices[device]->id, size_text(needed), size_text(usable), needed - usable, help,
                       context_helps ? "a smaller -c or " : "");
}

void check_fit(const Plan& plan) {
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        if (const std::string why = why_no_fit(plan, device); !why.empty()) fail(TSR_DOES_NOT_FIT, "{}", why);
    }
}

Plan make_plan(const Graph& model, const Registry& registry, const Hardware& hardware, const ScheduleOptions& options) {
    std::vector<std::string> notes;
    const auto devices = usable_devices(registry, hardware, notes);
    int layers = 0;
    for (const Node& node : model.nodes()) layers = std::max(layers, node.layer + 1);

    ScheduleOptions fitted = options;
    Plan plan = plan_once(model, registry, devices, fitted);
    if (options.placement.gpu_layers < 0 && devices.size() > 1 && !fits_gpus(plan)) {
        // Routed experts leave first, the first layers' before the last: they are read least often for their size.
        const auto fits = [&] { return fits_gpus(plan_once(model, registry, devices, fitted)); };
        fitted.placement.cpu_expert_layers = -1;
        if (fits()) {
            fitted.placement.cpu_expert_layers =
                least(std::max(options.placement.cpu_expert_layers, 0), layers, [&](int count) {
                    fitted.placement.cpu_expert_layers = count;
                    return fits();
                });
            notes.push_back(
                fmt::format("routed experts of the first {} layers stay on the CPU: they do not fit the GPUs "
                            "(--n-cpu-moe {} says so)",
                            fitted.placement.cpu_expert_layers, fitted.placement.cpu_expert_layers));
        } else {
            const int fewer = least(0, layers, [&](int count) {
                fitted.placement.gpu_layers = layers - count;
                return fits();
            });
            fitted.placement.gpu_layers = layers - fewer;
            notes.push_back(
                fmt::format("{} of {} layers fit the GPUs, without their routed experts (-ngl {} --cpu-moe says so)",
                            fitted.placement.gpu_layers, layers, fitted.placement.gpu_layers));
        }
        plan = plan_once(model, registry, devices, fitted);
    }
    plan.notes.insert(plan.notes.begin(), notes.begin(), notes.end());
    return plan;
}

}  // namespace tessera
