#include "core/registry/table.hpp"

#include "core/base/error.hpp"
#include "core/base/plugin_call.hpp"
#include "core/base/text.hpp"
#include "core/graph/op_set.hpp"
#include "core/registry/names.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/cpp/device_fault.hpp>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

constexpr uint32_t kMaximumEntries = 1 << 16;

bool is_empty(const char* text) {
    return !text || !*text;
}

bool is_same(const char* a, const char* b) {
    return std::string_view(a) == b;
}

// What every struct of a table is checked for: the size that it had in the minor version that the plugin was built for,
// and a chain of extensions that can be followed. A longer struct is taken: nothing past what this host knows is read.
template <typename T>
std::string struct_fault(const T& value, uint32_t expected, std::string_view what) {
    if (value.struct_size < expected) {
        return fmt::format(
            "{}: struct_size is {}, expected at least {}, as the ABI that the table declares has it; "
            "headers from before that version was final had less: build the plugin again with this SDK",
            what, value.struct_size, expected);
    }
    if (const char* why = sdk::chain_fault(value.next)) return fmt::format("{}: {}", what, why);
    return {};
}

// What is wrong with a name that stands for something in reports and on command lines.
std::string name_fault(const char* name, std::string_view what) {
    if (name && is_name(name)) return {};
    return fmt::format("{}: expected a name of {}, found {}", what, kNameRule,
                       is_empty(name) ? "nothing" : fmt::format("'{}'", printable(name, 100)));
}

// Faults of the entries of one table.
class Entries {
  public:
    explicit Entries(const tsr_plugin& table) : plugin_(table.name), minor_(table.abi_minor) {}

    std::string fault(const tsr_device_provider& provider) const;
    std::string fault(const tsr_kernel& kernel) const;
    std::string fault(const tsr_layout& layout) const;
    // `op`: the operator that it belongs to; empty if it is for an op of another plugin.
    std::string fault(const tsr_lowering& lowering, std::string_view op) const;
    std::string fault(const tsr_operator& op) const;

  private:
    template <typename T>
    std::string size_fault(const T& value, std::string_view what) const {
        return struct_fault(value, sdk::size_in_version<T>(minor_), what);
    }

    const char* plugin_;
    uint32_t minor_;
};

std::string Entries::fault(const tsr_device_provider& provider) const {
    constexpr uint32_t kThroughNumber = offsetof(tsr_device_provider, device_abi) + sizeof provider.device_abi;
    if (provider.struct_size < kThroughNumber) return struct_fault(provider, kThroughNumber, "a device provider");
    if (!device_abi_fault(provider).empty()) return {};  // its other fields cannot be read: it is left out
    if (std::string why = struct_fault(provider, sizeof provider, "a device provider"); !why.empty()) return why;
    if (std::string why = name_fault(provider.kind, "the kind of a device provider"); !why.empty()) return why;
    if (std::string_view(provider.kind) == "cpu")
        return "a device provider claims the kind cpu, which is the host's own";
    if (is_empty(provider.interop)) return fmt::format("the device provider of kind {} has no interop", provider.kind);
    if (!provider.match || !provider.open) {
        return fmt::format("the device provider of kind {} lacks a function (match, open)", provider.kind);
    }
    return {};
}

std::string Entries::fault(const tsr_kernel& kernel) const {
    if (std::string why = size_fault(kernel, "a kernel"); !why.empty()) return why;
    if (std::string why = name_fault(kernel.name, "a kernel"); !why.empty()) return why;
    for (const auto& [name, what] : {std::pair(kernel.op, "op"), std::pair(kernel.device_kind, "device kind")}) {
        if (std::string why = name_fault(name, fmt::format("the {} of kernel {}", what, kernel.name)); !why.empty())
            return why;
    }
    const bool runs = std::string_view(kernel.device_kind) == "cpu" ? kernel.run != nullptr : kernel.enqueue != nullptr;
    if (!kernel.plan || !kernel.prepare || !kernel.release || !runs) {
        return fmt::format("kernel {}: a function is missing (plan, prepare, release, and run for cpu, else enqueue)",
                           kernel.name);
    }
    return {};
}

std::string Entries::fault(const tsr_layout& layout) const {
    if (std::string why = size_fault(layout, "a layout"); !why.empty()) return why;
    if (std::string why = name_fault(layout.name, "a layout"); !why.empty()) return why;
    if (layout.group_rows == 0 || layout.elements_multiple == 0) {
        return fmt::format("layout {}: group_rows and elements_multiple must be at least 1", layout.name);
    }
    if (!layout.group_bytes || (!layout.pack && !layout.unpack))
        return fmt::format("layout {}: group_bytes or both of pack and unpack are missing", layout.name);
    uint64_t bytes = 0;
    try {
        bytes = call_plugin({plugin_, "group_bytes", "layout", layout.name},
                            [&] { return layout.group_bytes(&layout, layout.elements_multiple); });
    } catch (const Error& error) {
        return error.what();
    }
    if (bytes == 0) {
        return fmt::format("layout {}: group_bytes gives 0 for rows of {} elements", layout.name,
                           layout.elements_multiple);
    }
    if (layout.device_abi == TSR_DEVICE_ABI && (layout.enqueue_pack || layout.enqueue_unpack) &&
        is_empty(layout.interop)) {
        return fmt::format("layout {}: it packs on devices and names no interop", layout.name);
    }
    return {};
}

std::string Entries::fault(const tsr_lowering& lowering, std::string_view op) const {
    const std::string what = op.empty() ? "a lowering" : fmt::format("a lowering of {}", op);
    if (std::string why = size_fault(lowering, what); !why.empty()) return why;
    if (std::string why = name_fault(lowering.name, what); !why.empty()) return why;
    if (std::string why = name_fault(lowering.op, fmt::format("the op of lowering {}", lowering.name)); !why.empty())
        return why;
    if (!op.empty() && op != lowering.op) return fmt::format("{} is of another op, {}", what, lowering.op);
    if (!lowering.build) return fmt::format("lowering {} of {}: build is missing", lowering.name, lowering.op);
    return {};
}

// Checks a list of the table, calling `more` with each entry.
template <typename T, typename More>
std::string list_fault(const T* const* list, uint32_t count, std::string_view what, More&& more) {
    if (count == 0) return {};
    if (!list || count > kMaximumEntries) return fmt::format("the list of {} is missing or too long ({})", what, count);
    for (uint32_t i = 0; i < count; ++i) {
        if (!list[i]) return fmt::format("entry {} of the list of {} is NULL", i, what);
        if (std::string why = more(*list[i]); !why.empty()) return why;
    }
    return {};
}

std::string Entries::fault(const tsr_operator& op) const {
    if (std::string why = size_fault(op, "an operator"); !why.empty()) return why;
    if (std::string why = name_fault(op.name, "an operator"); !why.empty()) return why;
    if (!op.infer) return fmt::format("operator {} has no infer", op.name);
    if (std::ranges::any_of(builtin_operators(),
                            [&](const tsr_operator* own) { return is_same(own->name, op.name); })) {
        return fmt::format(
            "operator {}: the core has an op of this name. A plugin may provide kernels and lowerings "
            "(tsr_plugin.lowerings) "
            "for it; an op of its own needs another name",
            op.name);
    }
    return list_fault(op.lowerings, op.lowering_count, fmt::format("lowerings of {}", op.name),
                      [&](const tsr_lowering& lowering) { return fault(lowering, op.name); });
}

std::string join(const std::set<std::string>& names) {
    return names.empty() ? "none" : joined(names);
}

std::string other_device_abi(std::string_view what, uint32_t found) {
    return fmt::format("{}: built for device ABI {}, this host drives devices by {} (TSR_DEVICE_ABI)", what, found,
                       TSR_DEVICE_ABI);
}

// Whether the version stands where tables had it before ABI 1.0 was final, and nonsense (part of a pointer) where they
// have it since.
bool has_early_layout(const tsr_plugin& table) {
    struct Early {
        uint32_t struct_size;
        const void* next;
        uint32_t abi_major, abi_minor;
    } early;
    if (table.struct_size < sizeof early || table.abi_major == TSR_ABI_MAJOR) return false;
    std::memcpy(&early, &table, sizeof early);
    return early.abi_major == TSR_ABI_MAJOR && early.abi_minor <= TSR_ABI_MINOR;
}

}  // namespace

std::string device_abi_fault(const tsr_device_provider& provider) {
    return provider.device_abi == TSR_DEVICE_ABI ? std::string()
                                                 : other_device_abi("a device provider", provider.device_abi);
}

std::string device_abi_fault(const tsr_kernel& kernel) {
    if (is_same(kernel.device_kind, "cpu") || kernel.device_abi == TSR_DEVICE_ABI) return {};
    return other_device_abi(fmt::format("kernel {} for {}", kernel.name, kernel.device_kind), kernel.device_abi);
}

std::string device_abi_fault(const tsr_layout& layout) {
    if ((!layout.enqueue_pack && !layout.enqueue_unpack) || layout.device_abi == TSR_DEVICE_ABI) return {};
    return other_device_abi(fmt::format("packing of layout {} on a device", layout.name), layout.device_abi);
}

std::string table_fault(const tsr_plugin& table) {
    // No field may be read before struct_size shows that it exists.
    constexpr size_t kThroughVersion = offsetof(tsr_plugin, abi_minor) + sizeof(uint32_t);
    if (table.struct_size < kThroughVersion) {
        return fmt::format("the table: struct_size is {}, expected at least {}", table.struct_size,
                           +TSR_SIZE_tsr_plugin_0);
    }
    if (has_early_layout(table)) {
        return fmt::format(
            "the table has the form of ABI {}.{} from before that version was final: build the plugin again "
            "with this SDK",
            TSR_ABI_MAJOR, TSR_ABI_MINOR);
    }
    if (table.abi_major != TSR_ABI_MAJOR || table.abi_minor > TSR_ABI_MINOR) {
        return fmt::format("the table is of ABI {}.{}; this host takes {}.0 to {}.{}", table.abi_major, table.abi_minor,
                           TSR_ABI_MAJOR, TSR_ABI_MAJOR, TSR_ABI_MINOR);
    }
    const uint32_t expected = sdk::size_in_version<tsr_plugin>(table.abi_minor);
    if (std::string why = struct_fault(table, expected, "the table"); !why.empty()) return why;
    if (is_empty(table.name) || is_empty(table.version)) return "the table has no name or no version";

    const Entries entries(table);
    const auto check = [&](const auto& entry) { return entries.fault(entry); };
    if (std::string why = list_fault(table.providers, table.provider_count, "providers", check); !why.empty())
        return why;
    if (std::string why = list_fault(table.layouts, table.layout_count, "layouts", check); !why.empty()) return why;
    if (std::string why = list_fault(table.operators, table.operator_count, "operators", check); !why.empty())
        return why;
    const auto check_lowering = [&](const tsr_lowering& lowering) { return entries.fault(lowering, ""); };
    if (std::string why = list_fault(table.lowerings, table.lowering_count, "lowerings", check_lowering); !why.empty())
        return why;
    std::set<std::string_view> names;
    return list_fault(table.kernels, table.kernel_count, "kernels", [&](const tsr_kernel& kernel) {
        if (std::string why = entries.fault(kernel); !why.empty()) return why;
        return names.insert(kernel.name).second ? std::string() : fmt::format("two kernels are named {}", kernel.name);
    });
}

std::string architectures_fault(const tsr_architectures& list) {
    if (std::string why = struct_fault(list, sizeof list, "the list of architectures"); !why.empty()) return why;
    std::set<std::string_view> names;
    return list_fault(list.architectures, list.count, "architectures", [&](const tsr_architecture& one) {
        if (std::string why = struct_fault(one, sizeof one, "an architecture"); !why.empty()) return why;
        if (std::string why = name_fault(one.name, "an architecture"); !why.empty()) return why;
        if (!one.measure || !one.build) return fmt::format("architecture {}: measure or build is missing", one.name);
        return names.insert(one.name).second ? std::string() : fmt::format("two architectures are named {}", one.name);
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
    bool all_kinds = true;  // what a provider of another device ABI offers cannot be read
    for (uint32_t i = 0; i < table.provider_count; ++i) {
        if (!device_abi_fault(*table.providers[i]).empty()) {
            all_kinds = false;
            continue;
        }
        kinds.insert(table.providers[i]->kind);
    }
    for (uint32_t i = 0; i < table.kernel_count; ++i) {
        kinds.insert(table.kernels[i]->device_kind);
        ops.insert(table.kernels[i]->op);
    }
    for (uint32_t i = 0; i < table.operator_count; ++i) ops.insert(table.operators[i]->name);

    const std::set<std::string> said_kinds(manifest.kinds.begin(), manifest.kinds.end());
    const bool agree = all_kinds ? kinds == said_kinds : std::ranges::includes(said_kinds, kinds);
    if (!agree) return differ("kinds", join(said_kinds), join(kinds));
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
