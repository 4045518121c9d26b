#include "core/registry/report.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/hardware/compute_capability.hpp"
#include "core/registry/table.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace tessera {
namespace {

std::string size_text(uint64_t bytes) {
    if (bytes == 0) return "unknown";
    if (bytes < (1u << 20)) return fmt::format("{} KiB", bytes >> 10);
    if (bytes < (1u << 30)) return fmt::format("{} MiB", bytes >> 20);
    return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string plural(uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// Lines of `text`, each after `indent`.
std::string indented(std::string_view text, std::string_view indent) {
    std::string out(indent);
    for (const char c : text) {
        out += c;
        if (c == '\n') out += indent;
    }
    return out;
}

// Plugins with kernels for a device kind, by name.
std::vector<std::string> kernel_plugins(const Registry& registry, std::string_view kind) {
    std::vector<std::string> names;
    for (const PluginRecord& record : registry.plugins()) {
        if (!record.table) continue;
        const auto count = std::count_if(record.table->kernels, record.table->kernels + record.table->kernel_count,
                                         [&](const tsr_kernel* kernel) { return kind == kernel->device_kind; });
        if (count > 0) names.push_back(fmt::format("{} ({})", record.manifest.name, count));
    }
    return names;
}

std::string cpu_text(const tsr_device_info& cpu) {
    std::string text = fmt::format("{}: {}\n", cpu.id, printable(cpu.name));
    text +=
        fmt::format("  {}, {}, {} memory ({} free)\n", plural(cpu.threads, "thread"),
                    plural(cpu.numa_nodes, "NUMA node"), size_text(cpu.memory_bytes), size_text(cpu.free_memory_bytes));
    if (cpu.l2_bytes > 0) {
        text += fmt::format("  caches: {} and {} a core, {} shared\n", size_text(cpu.l1_bytes), size_text(cpu.l2_bytes),
                            size_text(cpu.l3_bytes));
    }
    std::vector<std::string_view> flags;
    for (const char* const* flag = cpu.cpu_flags; flag && *flag; ++flag) flags.emplace_back(*flag);
    return text + "  flags: " + wrapped(printable(joined(flags, " "), 2000), 9, 9) + "\n";
}

std::string gpu_text(const tsr_device_info& gpu) {
    std::string text = fmt::format("{}: {}, compute capability {}, {} memory ({} free)", gpu.id, printable(gpu.name),
                                   compute_capability_text(gpu.compute_capability), size_text(gpu.memory_bytes),
                                   size_text(gpu.free_memory_bytes));
    for (const char* more : {gpu.link, gpu.pci_id}) {
        if (*more) text += ", " + printable(more);
    }
    return wrapped(text, 0, 2) + "\n";
}

std::string_view state_name(PluginState state) {
    switch (state) {
        case PluginState::kChosen:
            return "chosen";
        case PluginState::kRejected:
            return "not used";
        case PluginState::kOff:
            return "off";
    }
    return "";
}

std::string contents(const PluginRecord& record) {
    const tsr_plugin& table = *record.table;
    std::vector<std::string> parts;
    std::set<std::string> kinds;
    for (uint32_t i = 0; i < table.kernel_count; ++i) kinds.insert(table.kernels[i]->device_kind);
    if (table.provider_count > 0) {
        std::set<std::string> provided;
        for (uint32_t i = 0; i < table.provider_count; ++i) {
            const tsr_device_provider& provider = *table.providers[i];
            if (device_abi_fault(provider).empty()) provided.insert(provider.kind);
        }
        if (!provided.empty()) parts.push_back("devices of kind " + joined(provided));
    }
    if (table.kernel_count > 0) parts.push_back(plural(table.kernel_count, "kernel") + " for " + joined(kinds));
    if (table.layout_count > 0) parts.push_back(plural(table.layout_count, "layout"));
    std::vector<std::string> operators;
    for (uint32_t i = 0; i < table.operator_count; ++i) operators.push_back(table.operators[i]->name);
    if (!operators.empty()) parts.push_back((operators.size() == 1 ? "operator " : "operators ") + joined(operators));
    std::set<std::string> lowered;
    for (uint32_t i = 0; i < table.lowering_count; ++i) lowered.insert(table.lowerings[i]->op);
    if (!lowered.empty()) parts.push_back(plural(table.lowering_count, "lowering") + " of " + joined(lowered));
    const auto& architectures = record.architectures;
    if (!architectures.empty())
        parts.push_back((architectures.size() == 1 ? "architecture " : "architectures ") + joined(architectures));
    return parts.empty() ? "nothing" : joined(parts);
}

std::string details(const PluginRecord& record) {
    const Manifest& manifest = record.manifest;
    std::string text = fmt::format("  {}\n", record.path.string());
    if (!manifest.summary.empty()) text += fmt::format("  {}\n", printable(manifest.summary));
    std::vector<std::string> needs;
    if (!manifest.cpu_flags.empty()) needs.push_back("CPU flags " + joined(manifest.cpu_flags, " "));
    if (manifest.minimum_compute_capability > 0) {
        needs.push_back("compute capability from " + compute_capability_text(manifest.minimum_compute_capability));
    }
    if (manifest.maximum_compute_capability < UINT32_MAX) {
        needs.push_back("compute capability to " + compute_capability_text(manifest.maximum_compute_capability));
    }
    if (!manifest.minimum_driver.empty()) needs.push_back("NVIDIA driver from " + manifest.minimum_driver);
    if (!needs.empty()) text += fmt::format("  needs: {}\n", joined(needs));
    return text;
}

std::string plugin_text(const PluginRecord& record, bool why) {
    const Manifest& manifest = record.manifest;
    std::string text = fmt::format("{} {}: {}", manifest.name.empty() ? record.path.filename().string() : manifest.name,
                                   manifest.version, state_name(record.state));
    if (manifest.name.empty())
        text = fmt::format("{}: {}", printable(record.path.filename().string()), state_name(record.state));
    if (record.table) text += ", provides " + contents(record);
    const auto left_out = [&] {
        std::string lines;
        for (const std::string& part : record.left_out) lines += fmt::format("  left out: {}\n", part);
        return lines;
    };
    if (!why) {
        const std::string_view reason = std::string_view(record.reason).substr(0, record.reason.find('\n'));
        if (record.state == PluginState::kRejected) text += fmt::format(" ({})", printable(reason));
        return wrapped(text, 0, 2) + "\n" + left_out();
    }
    text = wrapped(text, 0, 2) + "\n" + left_out() + details(record);
    if (!record.reason.empty()) text += fmt::format("  why not: {}\n", record.reason);
    return text;
}

}  // namespace

std::string devices_report(const Hardware& hardware, const Registry& registry,
                           const std::map<std::string, std::string>& memory) {
    std::string text;
    for (const tsr_device_info* device : hardware.devices()) {
        const bool is_cpu = std::string_view(device->kind) == "cpu";
        text += is_cpu ? cpu_text(*device) : gpu_text(*device);
        const std::vector<std::string> kernels = kernel_plugins(registry, device->kind);
        if (!is_cpu) {
            std::string why;
            const tsr_device_provider* provider = nullptr;
            try {
                provider = registry.find_provider(*device, &why);
            } catch (const Error& error) {
                why = error.what();
            }
            if (!provider) {
                text += "  cannot be used:\n" + indented(why, "    ") + "\n";
                continue;
            }
            text += fmt::format("  owned by: {}\n", registry.owner(*provider).manifest.name);
            if (const auto line = memory.find(device->id); line != memory.end())
                text += "  memory: " + wrapped(printable(line->second), 10, 10) + "\n";
        }
        text += "  kernels of: " + wrapped(kernels.empty() ? "no plugin" : joined(kernels), 14, 14) + "\n";
    }
    if (hardware.devices().size() == 1 && !hardware.is_rig()) {
        text += hardware.gpu_driver().empty() ? "No GPU: no NVIDIA driver (libcuda.so.1) could be loaded.\n"
                                              : "No GPU: the driver reports none.\n";
    }
    return text;
}

std::string plugins_report(const Registry& registry, bool why) {
    std::string text;
    for (const PluginRecord& record : registry.plugins()) text += plugin_text(record, why);
    if (registry.plugins().empty()) text += "No plugins found.\n";
    for (const std::string& conflict : registry.conflicts()) text += fmt::format("conflict: {}\n", conflict);
    if (!why) return text;
    for (const auto& folder : registry.folders()) text += fmt::format("looked in: {}\n", folder.string());
    return text;
}

}  // namespace tessera
