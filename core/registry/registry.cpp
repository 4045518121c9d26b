#include "core/registry/registry.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/graph/op_set.hpp"
#include "core/registry/discover.hpp"
#include "core/registry/extension.hpp"
#include "core/registry/module.hpp"
#include "core/registry/screen.hpp"
#include "core/registry/table.hpp"

#include <tessera/sizes.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

namespace tessera {
namespace {

// Maps every candidate that passed the checks; of plugins with one name the first that works.
void open_plugins(std::vector<PluginRecord>& records, const Config& config, const Hardware& hardware) {
    std::map<std::string, std::filesystem::path> chosen;
    for (PluginRecord& record : records) {
        if (record.state != PluginState::kChosen) continue;
        const std::string& name = record.manifest.name;
        record.state = PluginState::kRejected;
        if (std::find(config.off.begin(), config.off.end(), name) != config.off.end()) {
            record.state = PluginState::kOff;
            record.reason =
                fmt::format("disabled in {}", config.file.empty() ? "the configuration" : config.file.string());
            continue;
        }
        if (const auto other = chosen.find(name); other != chosen.end()) {
            record.reason = fmt::format("another plugin of this name is taken: {}", other->second.string());
            continue;
        }
        try {
            record.reason = why_unsuitable(record, config, hardware);
            if (record.reason.empty()) record.reason = why_refused(record);
            if (record.reason.empty()) record.reason = screen_plugin(record, config);
            if (!record.reason.empty()) continue;
            const Module module = open_module(library_path(record), record.manifest, hardware);
            record.reason = module.failure;
            record.table = module.table;
        } catch (const std::exception& error) {
            record.reason = error.what();
        }
        if (!record.table) continue;
        record.state = PluginState::kChosen;
        record.for_plans_only = is_for_plans_only(record.manifest);
        chosen.emplace(name, record.path);
    }
}

// Throws if a plugin that the config names cannot be used.
void demand(const Registry& registry, const std::string& name, std::string_view where) {
    if (registry.find_plugin(name)) return;
    std::string reasons;
    bool found = false;
    for (const PluginRecord& record : registry.plugins()) {
        if (record.manifest.name != name) continue;
        found = true;
        reasons += fmt::format("\n  {}: {}", record.path.string(), record.reason);
    }
    if (found)
        fail(TSR_UNSUPPORTED, "{} names the plugin '{}', which cannot be used:{}", where, printable(name), reasons);
    for (const auto& folder : registry.folders()) reasons += "\n  " + folder.string();
    fail(TSR_NOT_FOUND, "{} names the plugin '{}', which is not there; looked in:{}", where, printable(name), reasons);
}

// Whether two plugins can mean the same bytes by one layout.
bool same_layout(const tsr_layout& a, const tsr_layout& b, const PluginCall& call) {
    const PluginCallScope scope(call);
    return a.type == b.type && a.group_rows == b.group_rows && a.elements_multiple == b.elements_multiple &&
           a.group_bytes(&a, a.elements_multiple) == b.group_bytes(&b, b.elements_multiple);
}

bool is_builtin(std::string_view op) {
    return std::ranges::any_of(builtin_operators(), [&](const tsr_operator* own) { return op == own->name; });
}

template <typename T>
const T* find_by_name(const std::vector<const T*>& sorted, std::string_view name) noexcept {
    const auto at = std::lower_bound(sorted.begin(), sorted.end(), name,
                                     [](const T* entry, std::string_view wanted) { return entry->name < wanted; });
    return at != sorted.end() && name == (*at)->name ? *at : nullptr;
}

template <typename T>
void insert_by_name(std::vector<const T*>& sorted, const T* entry) {
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), entry,
                                   [](const T* a, const T* b) { return std::string_view(a->name) < b->name; }),
                  entry);
}

}  // namespace

Registry Registry::load(const Config& config, const Hardware& hardware) {
    Registry registry;
    if (config.default_plugin_folder) {
        registry.folders_.push_back(default_plugin_folder());
        if (auto folder = user_plugin_folder()) registry.folders_.push_back(std::move(*folder));
    }
    registry.folders_.insert(registry.folders_.end(), config.plugin_folders.begin(), config.plugin_folders.end());
    registry.records_ = find_plugins(registry.folders_);
    open_plugins(registry.records_, config, hardware);
    registry.index(config.prefer);

    const std::string file = config.file.empty() ? "the configuration" : config.file.string();
    for (const std::string& name : config.prefer) demand(registry, name, file + ", plugins.prefer,");
    if (hardware.is_rig()) return registry;  // the config describes this machine, not a rig
    // Devices that are not here were left out (-dev), or the config was not applied to the hardware.
    const auto give = [&](const std::string& id, const std::string& plugin, const std::string& where) {
        const tsr_device_info* info = hardware.find(id);
        if (plugin.empty() || !info) return;
        demand(registry, plugin, fmt::format("{}, {},", file, where));
        registry.device_plugins_[info->id] = plugin;
    };
    for (const auto& [id, device] : config.devices) {
        give(id, device.plugin, fmt::format("[devices.{}]", id));
        for (size_t i = 0; i < device.logical.size(); ++i)
            give(fmt::format("{}.{}", id, i), device.logical[i].plugin, fmt::format("[[devices.{}.logical]]", id));
    }
    return registry;
}

Registry Registry::of_tables(std::span<const tsr_plugin* const> tables, const std::vector<std::string>& prefer) {
    Registry registry;
    for (const tsr_plugin* table : tables) {
        if (std::string why = table_fault(*table); !why.empty()) {
            fail(TSR_INVALID_ARGUMENT, "{}: {}",
                 table->struct_size >= TSR_SIZE_tsr_plugin_0 && table->name ? table->name : "a plugin", why);
        }
        PluginRecord record;
        record.manifest.name = table->name;
        record.manifest.version = table->version;
        record.state = PluginState::kChosen;
        record.table = table;
        registry.records_.push_back(std::move(record));
    }
    registry.index(prefer);
    return registry;
}

void Registry::index(const std::vector<std::string>& prefer) {
    no_preference_ = static_cast<uint32_t>(prefer.size());
    // In the order in which operators and layouts of one name win.
    std::vector<size_t> order;
    for (size_t i = 0; i < records_.size(); ++i) {
        const auto named = std::find(prefer.begin(), prefer.end(), records_[i].manifest.name);
        preferences_.push_back(static_cast<uint32_t>(named - prefer.begin()));
        if (records_[i].table) order.push_back(i);
    }
    const auto rank = [&](size_t i) {
        return std::tuple(preferences_[i], -int64_t{records_[i].manifest.priority},
                          std::string_view(records_[i].table->name));
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });

    for (const size_t i : order) {
        const tsr_plugin& table = *records_[i].table;
        for (uint32_t k = 0; k < table.kernel_count; ++k) {
            const tsr_kernel* kernel = table.kernels[k];
            if (!is_used(i, *kernel)) continue;
            owners_[kernel] = i;
            kernels_[kernel->device_kind][kernel->op].push_back(kernel);
        }
        for (uint32_t k = 0; k < table.provider_count; ++k) {
            if (!is_used(i, *table.providers[k])) continue;
            owners_[table.providers[k]] = i;
            providers_[table.providers[k]->kind].push_back(table.providers[k]);
        }
        index_layouts(i);
        index_operators(i);
        index_architectures(i);
        note_unknown_kinds(i);
    }
    index_lowerings(order);
    const auto key = [&](const tsr_kernel* kernel) {
        const size_t i = owners_.at(kernel);
        return std::tuple(preferences_[i], -int64_t{kernel->priority}, -int64_t{records_[i].manifest.priority},
                          std::string_view(records_[i].table->name), std::string_view(kernel->name));
    };
    for (auto& [kind, by_op] : kernels_) {
        for (auto& [op, list] : by_op) {
            std::stable_sort(list.begin(), list.end(),
                             [&](const tsr_kernel* a, const tsr_kernel* b) { return key(a) < key(b); });
        }
    }
}

template <typename Part>
bool Registry::is_used(size_t record, const Part& part) {
    std::string why = device_abi_fault(part);
    if (why.empty()) return true;
    records_[record].left_out.push_back(std::move(why));
    return false;
}

// They are kept for hosts that describe such devices themselves.
void Registry::note_unknown_kinds(size_t record) {
    const tsr_plugin& table = *records_[record].table;
    std::set<std::string_view> kinds;
    for (uint32_t i = 0; i < table.provider_count; ++i) {
        if (device_abi_fault(*table.providers[i]).empty()) kinds.insert(table.providers[i]->kind);
    }
    for (uint32_t i = 0; i < table.kernel_count; ++i) kinds.insert(table.kernels[i]->device_kind);
    for (const std::string_view kind : kinds) {
        if (std::ranges::find(kDeviceKinds, kind) != kDeviceKinds.end()) continue;
        records_[record].left_out.push_back(
            fmt::format("what is for devices of kind {}: this version finds none of them, only cuda ones", kind));
    }
}

void Registry::index_layouts(size_t record) {
    const tsr_plugin& table = *records_[record].table;
    for (uint32_t i = 0; i < table.layout_count; ++i) {
        const tsr_layout* layout = table.layouts[i];
        const bool packs_there = is_used(record, *layout) && layout->enqueue_pack;  // the host's functions are used
        const tsr_layout* const earlier = find_layout(layout->name);
        if (!earlier) insert_by_name(layouts_, layout);
        if (!earlier || same_layout(*earlier, *layout, {table.name, "group_bytes", "layout", layout->name})) {
            owners_[layout] = record;
            if (packs_there) device_layouts_[layout->name].try_emplace(layout->interop, layout);
        } else {
            conflicts_.push_back(fmt::format("layout {}: {} and {} mean different bytes by it; that of {} is used",
                                             layout->name, owner_name(earlier), table.name, owner_name(earlier)));
        }
    }
}

void Registry::index_operators(size_t record) {
    const tsr_plugin& table = *records_[record].table;
    for (uint32_t i = 0; i < table.operator_count; ++i) {
        const tsr_operator* op = table.operators[i];
        if (const tsr_operator* const earlier = find_operator(op->name)) {
            conflicts_.push_back(fmt::format("operator {}: {} and {} provide it; that of {} is used", op->name,
                                             owner_name(earlier), table.name, owner_name(earlier)));
            continue;
        }
        owners_[op] = record;
        insert_by_name(operators_, op);
    }
}

// Nothing that is wrong with it takes the rest of the plugin away.
void Registry::index_architectures(size_t record) {
    const tsr_plugin& table = *records_[record].table;
    const tsr_architectures* list = nullptr;
    std::string why;
    try {
        list = static_cast<const tsr_architectures*>(find_extension(table, TSR_ARCHITECTURES));
        if (list) why = architectures_fault(*list);
    } catch (const Error& error) {
        why = error.what();
    }
    if (!why.empty()) records_[record].left_out.push_back(fmt::format("its architectures: {}", why));
    if (!list || !why.empty()) return;
    for (uint32_t i = 0; i < list->count; ++i) {
        const tsr_architecture* one = list->architectures[i];
        if (const tsr_architecture* const earlier = find_architecture(one->name)) {
            conflicts_.push_back(fmt::format("architecture {}: {} and {} provide it; that of {} is used", one->name,
                                             owner_name(earlier), table.name, owner_name(earlier)));
            continue;
        }
        owners_[one] = record;
        insert_by_name(architectures_, one);
        records_[record].architectures.emplace_back(one->name);
    }
}

void Registry::index_lowerings(const std::vector<size_t>& order) {
    const auto add = [&](size_t record, const tsr_lowering* lowering) {
        owners_[lowering] = record;
        lowerings_[lowering->op].push_back(lowering);
    };
    for (const size_t i : order) {
        const tsr_plugin& table = *records_[i].table;
        for (uint32_t k = 0; k < table.operator_count; ++k) {
            const tsr_operator& op = *table.operators[k];
            if (find_operator(op.name) != &op) continue;  // lowerings of another operator of that name
            for (uint32_t l = 0; l < op.lowering_count; ++l) add(i, op.lowerings[l]);
        }
        for (uint32_t k = 0; k < table.lowering_count; ++k) {
            const tsr_lowering& lowering = *table.lowerings[k];
            const bool is_known = find_operator(lowering.op) || is_builtin(lowering.op);
            if (is_known) {
                add(i, &lowering);
            } else {
                records_[i].left_out.push_back(
                    fmt::format("lowering {} of {}: no plugin provides this op", lowering.name, lowering.op));
            }
        }
    }
}

const PluginRecord& Registry::owner_of(const void* entry) const {
    const auto at = owners_.find(entry);
    if (at == owners_.end()) fail(TSR_INTERNAL, "asked for the plugin of something that is not in this registry");
    return records_[at->second];
}

const char* Registry::plugin_name(const void* entry) const noexcept {
    const auto at = owners_.find(entry);
    return at == owners_.end() ? "(unknown)" : records_[at->second].table->name;
}

PluginCall Registry::call(const tsr_kernel& kernel, const char* function, const char* node) const {
    return {plugin_name(&kernel), function, "kernel", kernel.name, node};
}
PluginCall Registry::call(const tsr_layout& layout, const char* function) const {
    return {plugin_name(&layout), function, "layout", layout.name};
}
PluginCall Registry::call(const tsr_device_provider& provider, const char* function, const char* device) const {
    return {plugin_name(&provider), function, "device", device};
}

void Registry::report_fault(const tsr_kernel& kernel, const std::string& line) const {
    {
        const std::scoped_lock lock(reported_->mutex);
        if (!reported_->kernels.insert(&kernel).second) return;
    }
    log().warn("{}", line);
}

std::string Registry::owner_name(const void* entry) const {
    return owner_of(entry).table->name;
}

const PluginRecord& Registry::owner(const tsr_kernel& kernel) const {
    return owner_of(&kernel);
}
const PluginRecord& Registry::owner(const tsr_device_provider& provider) const {
    return owner_of(&provider);
}
const PluginRecord& Registry::owner(const tsr_operator& op) const {
    return owner_of(&op);
}

const PluginRecord& Registry::owner(const tsr_architecture& architecture) const {
    return owner_of(&architecture);
}

const tsr_architecture* Registry::find_architecture(std::string_view name) const noexcept {
    return find_by_name(architectures_, name);
}

uint32_t Registry::preference(const tsr_architecture& architecture) const {
    return preferences_[static_cast<size_t>(&owner_of(&architecture) - records_.data())];
}

const PluginRecord& Registry::owner(const tsr_lowering& lowering) const {
    return owner_of(&lowering);
}

uint32_t Registry::preference(const tsr_lowering& lowering) const {
    return preferences_[static_cast<size_t>(&owner_of(&lowering) - records_.data())];
}

uint32_t Registry::preference(const tsr_kernel& kernel) const {
    return preferences_[static_cast<size_t>(&owner_of(&kernel) - records_.data())];
}

const PluginRecord* Registry::find_plugin(std::string_view name) const noexcept {
    for (const PluginRecord& record : records_) {
        if (record.state == PluginState::kChosen && record.manifest.name == name) return &record;
    }
    return nullptr;
}

std::span<const tsr_kernel* const> Registry::kernels(std::string_view device_kind, std::string_view op) const noexcept {
    const auto by_op = kernels_.find(device_kind);
    if (by_op == kernels_.end()) return {};
    const auto list = by_op->second.find(op);
    if (list == by_op->second.end()) return {};
    return list->second;
}

std::span<const tsr_lowering* const> Registry::lowerings(std::string_view op) const noexcept {
    const auto list = lowerings_.find(op);
    if (list == lowerings_.end()) return {};
    return list->second;
}

const tsr_layout* Registry::find_layout(std::string_view name) const noexcept {
    return find_by_name(layouts_, name);
}
const tsr_layout* Registry::find_device_layout(std::string_view name, std::string_view interop) const noexcept {
    const auto by_interop = device_layouts_.find(name);
    if (by_interop == device_layouts_.end()) return nullptr;
    const auto found = by_interop->second.find(interop);
    return found == by_interop->second.end() ? nullptr : found->second;
}
const tsr_operator* Registry::find_operator(std::string_view name) const noexcept {
    return find_by_name(operators_, name);
}

std::span<const tsr_device_provider* const> Registry::providers(std::string_view device_kind) const noexcept {
    const auto list = providers_.find(device_kind);
    if (list == providers_.end()) return {};
    return list->second;
}

std::string_view Registry::interop_of(const tsr_device_info& device) const {
    if (std::string_view(device.kind) == "cpu") return {};
    const tsr_device_provider* provider = find_provider(device);
    return provider ? provider->interop : "no plugin's";
}

std::string Registry::why_withheld(const tsr_kernel& kernel, const tsr_device_info& device) const {
    const auto given = device_plugins_.find(std::string_view(device.id));
    if (given == device_plugins_.end()) return {};
    const PluginRecord& record = owner(kernel);
    if (record.manifest.name == given->second) return {};
    const bool owns =
        std::ranges::any_of(providers(device.kind), [&](const auto* provider) { return &owner(*provider) == &record; });
    return owns ? fmt::format("the configuration gives {} to {}", device.id, given->second) : std::string();
}

const tsr_device_provider* Registry::find_provider(const tsr_device_info& device, std::string* why) const {
    const auto given = device_plugins_.find(std::string_view(device.id));
    const bool is_given = given != device_plugins_.end();
    std::string refusals;
    for (const tsr_device_provider* provider : providers(device.kind)) {
        const std::string& name = owner(*provider).manifest.name;
        if (is_given && name != given->second) continue;
        char reason[TSR_REASON_BYTES] = "";
        const PluginCall matching = call(*provider, "match", device.id);
        const uint32_t answer =
            call_plugin(matching, [&] { return provider->match(provider, &device, reason, sizeof reason); });
        if (answer == 1) return provider;
        if (answer != 0) log().warn("{}: it answered {}, expected 0 or 1: taken for 0", describe(matching), answer);
        reason[sizeof reason - 1] = '\0';
        refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "\n", name, printable(reason, sizeof reason));
    }
    if (is_given) {
        fail(TSR_UNSUPPORTED, "the configuration gives {} ({}) to the plugin {}, which cannot own it: {}", device.id,
             device.name, given->second,
             refusals.empty() ? fmt::format("it has nothing for devices of kind {}", device.kind) : refusals);
    }
    if (why && refusals.empty()) {
        // Of plugins that were not loaded, those that are made for such devices say why.
        for (const PluginRecord& record : records_) {
            const auto& kinds = record.manifest.kinds;
            if (record.table || std::find(kinds.begin(), kinds.end(), device.kind) == kinds.end()) continue;
            refusals += fmt::format("{}{}: {}", refusals.empty() ? "" : "\n", record.manifest.name, record.reason);
        }
    }
    if (why)
        *why = refusals.empty() ? fmt::format("no plugin for devices of kind {} was found", device.kind) : refusals;
    return nullptr;
}

}  // namespace tessera
