#include "core/plan/kernels.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/plan/kernel_plan.hpp"
#include "core/plan/predict.hpp"

#include <tessera/cpp/call_cost.hpp>

#include <algorithm>
#include <limits>

namespace tessera {
namespace {

// Half full: where a conversation spends its time on average.
double half_full(double empty, double full) {
    return (empty + std::max(empty, full)) / 2;
}

}  // namespace

double KernelCandidate::generation_seconds() const {
    return half_full(plan.seconds_one_row, plan.seconds_one_row_full);
}

double KernelCandidate::prompt_seconds() const {
    return half_full(plan.seconds_all_rows, plan.seconds_all_rows_full) * kPromptShare;
}

std::vector<std::string> KernelCandidate::layouts(uint32_t index) const {
    std::vector<std::string> names;
    if (const char* const* list = plan.layouts[index]) {
        for (; *list; ++list) names.emplace_back(*list);
    }
    if (names.empty()) names.emplace_back();
    return names;
}

bool KernelCandidate::accepts(uint32_t index, std::string_view layout) const {
    const char* const* list = plan.layouts[index];
    if (!list || !*list) return layout.empty();
    for (; *list; ++list) {
        if (layout == *list) return true;
    }
    return false;
}

double KernelCandidates::seconds() const {
    return able.empty() ? std::numeric_limits<double>::infinity() : able.front().seconds();
}

namespace {

// Why a kernel must not be given the device's addresses; empty if it may.
std::string interop_fault(const tsr_kernel& kernel, const tsr_device_info& device, std::string_view interop) {
    const std::string_view needed = kernel.interop ? kernel.interop : "";
    if (needed == interop) return {};
    if (needed.empty()) return fmt::format("it names no interop; {} has {}", device.id, interop);
    return fmt::format("it needs interop {}; {} has {}", printable(needed, 64), device.id,
                       interop.empty() ? "none" : interop);
}

// Adds what every node of a CPU costs, whatever its kernel.
void add_call(tsr_kernel_plan& plan, const tsr_device_info& device) {
    if (std::string_view(device.kind) != "cpu") return;
    const double seconds = sdk::call_seconds(&device);
    plan.seconds_one_row += seconds;
    plan.seconds_all_rows += seconds;
    // 0: as with nothing cached.
    if (plan.seconds_one_row_full > 0) plan.seconds_one_row_full += seconds;
    if (plan.seconds_all_rows_full > 0) plan.seconds_all_rows_full += seconds;
}

}  // namespace

NodeEstimate estimate_of(const tsr_kernel_plan& plan) {
    return {plan.seconds_one_row,       plan.seconds_all_rows, plan.seconds_one_row_full,
            plan.seconds_all_rows_full, plan.bytes_one_row,    plan.bytes_all_rows};
}

KernelCandidates find_kernels(const tsr_node& node, const tsr_device_info& device, const Registry& registry) {
    KernelCandidates found;
    if (node.input_count + node.output_count > TSR_MAX_OPERANDS) {
        found.unable.push_back({"every kernel", fmt::format("{} operands; the ABI has room for {}",
                                                            node.input_count + node.output_count, TSR_MAX_OPERANDS)});
        return found;
    }
    const std::string_view interop = registry.interop_of(device);
    for (const tsr_kernel* kernel : registry.kernels(device.kind, node.op)) {
        KernelCandidate candidate;
        candidate.kernel = kernel;
        candidate.plan.struct_size = sizeof candidate.plan;
        const std::string name = fmt::format("{}/{}", registry.owner(*kernel).manifest.name, kernel->name);
        if (kernel->op_version != node.op_version) {
            found.unable.push_back({name, fmt::format("it computes version {} of the op", kernel->op_version)});
            continue;
        }
        if (std::string why = registry.why_withheld(*kernel, device); !why.empty()) {
            found.unable.push_back({name, why});
            continue;
        }
        if (std::string why = interop_fault(*kernel, device, interop); !why.empty()) {
            found.unable.push_back({name, why});
            continue;
        }
        const PluginCall planning = registry.call(*kernel, "plan", node.name);
        std::string fault;
        try {
            call_checked(planning, [&] { return kernel->plan(kernel, &node, &device, &candidate.plan); });
            // Pointers of the plan may be wild, so reading it counts as part of the call.
            const std::string what =
                call_plugin(planning, [&] { return kernel_plan_fault(candidate.plan, node, interop, registry); });
            if (!what.empty()) fault = fmt::format("{}: {}", describe(planning), what);
            // Another kernel may do with less; without this one the run goes on.
            if (const uint64_t bytes = candidate.plan.workspace_bytes;
                fault.empty() && candidate.plan.supported && device.memory_bytes > 0 && bytes > device.memory_bytes)
                fault = fmt::format("{}: its workspace of {} bytes fits nowhere: {} has {} bytes of memory",
                                    describe(planning), bytes, device.id, device.memory_bytes);
        } catch (const Error& error) {
            fault = error.what();
        }
        add_call(candidate.plan, device);
        if (!fault.empty()) {
            registry.report_fault(*kernel, fault + "; the kernel is not used there");
            found.unable.push_back({name, fault});
        } else if (candidate.plan.supported) {
            found.able.push_back(candidate);
        } else {
            found.unable.push_back({name, printable(candidate.plan.reason, sizeof candidate.plan.reason)});
        }
    }
    std::ranges::stable_sort(found.able, [&](const KernelCandidate& a, const KernelCandidate& b) {
        const uint32_t pa = registry.preference(*a.kernel), pb = registry.preference(*b.kernel);
        if (pa != pb) return pa < pb;
        if (a.kernel->priority != b.kernel->priority) return a.kernel->priority > b.kernel->priority;
        return a.seconds() < b.seconds();
    });
    return found;
}

}  // namespace tessera
