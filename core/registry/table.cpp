#include "core/registry/table.hpp"

#include <tessera/cpp/device_fault.hpp>

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <set>
#include <string_view>

namespace tessera {
namespace {

constexpr uint32_t kMostEntries = 1 << 16;

bool is_empty(const char* text) {
    return !text || !*text;
}

// A struct of the ABI may be longer than this host knows, never shorter than it was in version 1.0.
template <typename T>
std::string size_fault(const T& value, std::string_view what) {
    if (value.struct_size >= sizeof(T)) return {};
    return fmt::format("{}: struct_size is {}, expected at least {}", what, value.struct_size, sizeof(T));
}

std::string fault(const tsr_device_provider& provider) {
    if (std::string why = size_fault(provider, "a device provider"); !why.empty()) return why;
    if (is_empty(provider.kind)) return "a device provider has no kind";
    if (std::string_view(provider.kind) == "cpu")
        return "a device provider claims the kind cpu, which is the host's own";
    if (!provider.match || !provider.open) {
        return fmt::format("the device provider of kind {} lacks a function (match, open)", provider.kind);
    }
    return {};
}

std::string fault(const tsr_kernel& kernel) {
    if (std::string why = size_fault(kernel, "a kernel"); !why.empty()) return why;
    if (is_empty(kernel.name)) return "a kernel has no name";
    if (is_empty(kernel.op) || is_empty(kernel.device_kind)) {
        return fmt::format("kernel {}: no op or no device kind", kernel.name);
    }
    const bool runs = std::string_view(kernel.device_kind) == "cpu" ? kernel.run != nullptr : kernel.enqueue != nullptr;
    if (!kernel.plan || !kernel.prepare || !kernel.release || !runs) {
        return fmt::format("kernel {}: a function is missing (plan, prepare, release, and run for cpu, else enqueue)",
                           kernel.name);
    }
    return {};
}

std::string fault(const tsr_layout& layout) {
    if (std::string why = size_fault(layout, "a layout"); !why.empty()) return why;
    if (is_empty(layout.name)) return "a layout has no name";
    if (layout.group_rows == 0 || layout.elements_multiple == 0) {
        return fmt::format("layout {}: group_rows and elements_multiple must be at least 1", layout.name);
    }
    if (!layout.group_bytes || (!layout.pack && !layout.unpack))
        return fmt::format("layout {}: group_bytes or both of pack and unpack are missing", layout.name);
    return {};
}

std::string fault(const tsr_lowering& lowering, std::string_view op) {
    if (std::string why = size_fault(lowering, fmt::format("a lowering of {}", op)); !why.empty()) return why;
    if (is_empty(lowering.name) || is_empty(lowering.op) || op != lowering.op) {
        return fmt::format("a lowering of {} has no name, or is of another op", op);
    }
    if (!lowering.components || !lowering.build) {
        return fmt::format("lowering {} of {}: components or build is missing", lowering.name, op);
    }
    return {};
}

// Checks a list of the table, calling `more` with each entry.
template <typename T, typename More>
std::string list_fault(const T* const* list, uint32_t count, std::string_view what, More&& more) {
    if (count == 0) return {};
    if (!list || count > kMostEntries) return fmt::format("the list of {} is missing or too long ({})", what, count);
    for (uint32_t i = 0; i < count; ++i) {
        if (!list[i]) return fmt::format("entry {} of the list of {} is NULL", i, what);
        if (std::string why = more(*list[i]); !why.empty()) return why;
    }
    return {};
}

std::string fault(const tsr_operator& op) {
    if (std::string why = size_fault(op, "an operator"); !why.empty()) return why;
    if (is_empty(op.name) || !op.infer) return "an operator has no name or no infer";
    return list_fault(op.lowerings, op.lowering_count, fmt::format("lowerings of {}", op.name),
                      [&](const tsr_lowering& lowering) { return fault(lowering, op.name); });
}

std::string join(const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

}  // namespace

std::string table_fault(const tsr_plugin& table) {
    // Nothing past struct_size may be read before it is known to be there.
    constexpr size_t kThroughVersion = offsetof(tsr_plugin, abi_minor) + sizeof(uint32_t);
    if (table.struct_size < kThroughVersion) {
        return fmt::format("the table's struct_size is {}, expected at least {}", table.struct_size, sizeof table);
    }
    if (table.abi_major != TSR_ABI_MAJOR || table.abi_minor > TSR_ABI_MINOR) {
        return fmt::format("the table is of ABI {}.{}; this host takes {}.0 to {}.{}", table.abi_major, table.abi_minor,
                           TSR_ABI_MAJOR, TSR_ABI_MAJOR, TSR_ABI_MINOR);
    }
    if (std::string why = size_fault(table, "the table"); !why.empty()) return why;
    if (is_empty(table.name) || is_empty(table.version)) return "the table has no name or no version";

    const auto check = [](const auto& entry) { return fault(entry); };
    if (std::string why = list_fault(table.providers, table.provider_count, "providers", check); !why.empty())
        return why;
    if (std::string why = list_fault(table.layouts, table.layout_count, "layouts", check); !why.empty()) return why;
    if (std::string why = list_fault(table.operators, table.operator_count, "operators", check); !why.empty())
        return why;
    std::set<std::string_view> names;
    return list_fault(table.kernels, table.kernel_count, "kernels", [&](const tsr_kernel& kernel) {
        if (std::string why = fault(kernel); !why.empty()) return why;
        return names.insert(kernel.name).second ? std::string() : fmt::format("two kernels are named {}", kernel.name);
    });
}

std::string device_fault(const tsr_device& device) {
    return sdk::device_fault(device);
}

std::string address_fault(const tsr_device& device, const void* address, uint64_t bytes) {
    return sdk::address_fault(device, address, bytes);
}

std::string contradiction(const Manifest& manifest, const tsr_plugin& table) {
    const auto differ = [](std::string_view what, std::string_view said, std::string_view found) {
        return fmt::format("the manifest says {} {}, the library's table {}", what, said, found);
    };
    if (manifest.name != table.name) return differ("name", manifest.name, table.name);
    if (manifest.version != table.version) return differ("version", manifest.version, table.version);
    if (manifest.abi_major != table.abi_major || manifest.abi_minor != table.abi_minor) {
        return differ("ABI", fmt::format("{}.{}", manifest.abi_major, manifest.abi_minor),
                      fmt::format("{}.{}", table.abi_major, table.abi_minor));
    }

    std::set<std::string> kinds, ops;
    for (uint32_t i = 0; i < table.provider_count; ++i) kinds.insert(table.providers[i]->kind);
    for (uint32_t i = 0; i < table.kernel_count; ++i) {
        kinds.insert(table.kernels[i]->device_kind);
        ops.insert(table.kernels[i]->op);
    }
    for (uint32_t i = 0; i < table.operator_count; ++i) ops.insert(table.operators[i]->name);

    const std::set<std::string> said_kinds(manifest.kinds.begin(), manifest.kinds.end());
    if (kinds != said_kinds) return differ("kinds", join(said_kinds), join(kinds));
    if (!manifest.ops) return {};
    const std::set<std::string> said_ops(manifest.ops->begin(), manifest.ops->end());
    std::set<std::string> too_many, unsaid;
    for (const std::string& op : said_ops) {
        if (!ops.contains(op)) too_many.insert(op);
    }
    for (const std::string& op : ops) {
        if (!said_ops.contains(op)) unsaid.insert(op);
    }
    if (too_many.empty() && unsaid.empty()) return {};
    return fmt::format(
        "the manifest's ops are not those of the library's table: only in the manifest: {}; only in the "
        "table: {}",
        join(too_many), join(unsaid));
}

}  // namespace tessera
