// The plugins of this process: found, checked by their manifests, mapped, and their tables merged.
#pragma once

#include "core/base/plugin_call.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/config.hpp"
#include "core/registry/manifest.hpp"

#include <tessera/extensions/architecture.h>
#include <tessera/plugin.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tessera {

enum class PluginState {
    kChosen,    // mapped and initialised; its tables are in the registry
    kRejected,  // cannot be used here
    kOff,       // the config disables it
};

struct PluginRecord {
    std::filesystem::path path;  // of the manifest; of the library where that has none; of a folder that is refused
    Manifest manifest;           // default values where it could not be read
    PluginState state = PluginState::kRejected;
    // Chosen for a rig: this machine's processor lacks flags of its kernels, which must never run here.
    bool for_plans_only = false;
    std::string reason;                      // why it is not used; empty if it is
    const tsr_plugin* table = nullptr;       // chosen only; lives until the process ends
    std::vector<std::string> left_out;       // chosen only: parts of it that are not used, and why
    std::vector<std::string> architectures;  // chosen only: names of those that it brings
};

// Plugins are mapped and initialised once in a process and stay, so everything that a table holds lives until the
// process ends; spans and records live as long as the registry (moving it keeps them valid). Reading is free on any
// thread; load may be called again, from one thread at a time.
class Registry {
  public:
    // Looks beside the executable, then in the config's folders. A plugin that cannot be used becomes a record that
    // says why; only one that the config names (prefer, a device's plugin) makes this throw Error(TSR_NOT_FOUND or
    // TSR_UNSUPPORTED). A library is mapped only if it is trusted, its hash is right, `hardware` has the flags that it
    // needs, and this very machine has them too, or, for a rig, those that it needs for plans.
    static Registry load(const Config& config, const Hardware& hardware);

    // A registry of tables that are in the process already: tests. They are checked as loaded ones are, in the order
    // given, and not initialised. `prefer`: as in the configuration. Throws Error(TSR_INVALID_ARGUMENT) for one that
    // would be rejected.
    static Registry of_tables(std::span<const tsr_plugin* const> tables, const std::vector<std::string>& prefer = {});

    // Everything found, in search order.
    std::span<const PluginRecord> plugins() const noexcept { return records_; }
    // The folders that were searched, in this order.
    std::span<const std::filesystem::path> folders() const noexcept { return folders_; }
    // nullptr if no plugin of that name is chosen.
    const PluginRecord* find_plugin(std::string_view name) const noexcept;

    // Kernels of one op for one device kind: by preference, then priority (larger first), then the priority of the
    // plugin's manifest, then the plugin's name, then the kernel's. Planning asks them for estimates, which come after
    // the kernel's priority.
    std::span<const tsr_kernel* const> kernels(std::string_view device_kind, std::string_view op) const noexcept;
    // Place of the kernel's plugin in the config's `prefer`; those that are not named there share the place after it.
    uint32_t preference(const tsr_kernel& kernel) const;
    // The plugin that brought the kernel. Throws Error(TSR_INTERNAL) for a kernel that is not of this registry.
    const PluginRecord& owner(const tsr_kernel& kernel) const;

    // Calls of functions of these, for call_plugin. `function` and `node` outlive the call.
    PluginCall call(const tsr_kernel& kernel, const char* function, const char* node = nullptr) const;
    PluginCall call(const tsr_layout& layout, const char* function) const;
    PluginCall call(const tsr_device_provider& provider, const char* function, const char* device) const;
    // Logs a fault of a kernel, once for each kernel of this registry. Any thread.
    void report_fault(const tsr_kernel& kernel, const std::string& line) const;

    // nullptr if there is none.
    const tsr_layout* find_layout(std::string_view name) const noexcept;
    // The first that packs rows into the layout of this name on devices of an interop (tsr_layout.enqueue_pack), which
    // may be another plugin's than find_layout's; nullptr if there is none.
    const tsr_layout* find_device_layout(std::string_view name, std::string_view interop) const noexcept;
    const tsr_operator* find_operator(std::string_view name) const noexcept;

    // Lowerings that plugins bring for an op: by preference, then the plugin's name, then as the plugin lists them;
    // those of the operator that is used, and those for an op of another plugin. The core's own are not among them.
    std::span<const tsr_lowering* const> lowerings(std::string_view op) const noexcept;
    uint32_t preference(const tsr_lowering& lowering) const;
    uint32_t no_preference() const noexcept { return no_preference_; }  // of plugins that `prefer` does not name
    const PluginRecord& owner(const tsr_lowering& lowering) const;

    // All, for listings: layouts and operators by name.
    std::span<const tsr_layout* const> layouts() const noexcept { return layouts_; }
    std::span<const tsr_operator* const> operators() const noexcept { return operators_; }

    // Providers of a device kind: by preference, then the manifest's priority, then the plugin's name.
    std::span<const tsr_device_provider* const> providers(std::string_view device_kind) const noexcept;
    // The first that matches the device, or the one that the config gives it. nullptr if none does; `why`, if given,
    // then gets a line for each that refused. Throws Error(TSR_UNSUPPORTED) if the one that the config gives it
    // refuses.
    const tsr_device_provider* find_provider(const tsr_device_info& device, std::string* why = nullptr) const;
    // Why a kernel is not used on a device although it may be able to: the config gives the device to one plugin, and
    // the kernel is of another one that owns such devices itself. Empty if it may be used.
    std::string why_withheld(const tsr_kernel& kernel, const tsr_device_info& device) const;
    // What the addresses and queues of a device are to kernels, by its provider; "" for the CPU.
    std::string_view interop_of(const tsr_device_info& device) const;
    const PluginRecord& owner(const tsr_device_provider& provider) const;
    const PluginRecord& owner(const tsr_operator& op) const;

    // Those of plugins (tessera/extensions/architecture.h), by name.
    std::span<const tsr_architecture* const> architectures() const noexcept { return architectures_; }
    const tsr_architecture* find_architecture(std::string_view name) const noexcept;
    const PluginRecord& owner(const tsr_architecture& architecture) const;
    uint32_t preference(const tsr_architecture& architecture) const;

    // Two plugins that bring one operator or architecture, or mean different bytes by one layout name: the first
    // counts, by preference, then the manifest's priority, then the plugin's name. One line each.
    std::span<const std::string> conflicts() const noexcept { return conflicts_; }

  private:
    struct Reported {
        std::mutex mutex;
        std::unordered_set<const void*> kernels;
    };
    Registry() = default;
    void index(const std::vector<std::string>& prefer);
    void note_unknown_kinds(size_t record);
    void index_layouts(size_t record);
    void index_operators(size_t record);
    void index_architectures(size_t record);
    void index_lowerings(const std::vector<size_t>& order);
    // Whether the part is of this host's device ABI; what is not is listed in the record.
    template <typename Part>
    bool is_used(size_t record, const Part& part);
    const PluginRecord& owner_of(const void* entry) const;
    const char* plugin_name(const void* entry) const noexcept;
    std::string owner_name(const void* entry) const;

    std::vector<std::filesystem::path> folders_;
    std::vector<PluginRecord> records_;
    template <typename T>
    using ByName = std::map<std::string, T, std::less<>>;
    ByName<ByName<std::vector<const tsr_kernel*>>> kernels_;  // device kind, op
    ByName<std::vector<const tsr_device_provider*>> providers_;
    ByName<std::vector<const tsr_lowering*>> lowerings_;  // op
    std::vector<const tsr_layout*> layouts_;
    ByName<ByName<const tsr_layout*>> device_layouts_;  // name, interop
    std::vector<const tsr_operator*> operators_;
    std::vector<const tsr_architecture*> architectures_;
    std::unordered_map<const void*, size_t> owners_;  // of every table entry, in records_
    std::vector<uint32_t> preferences_;               // of records_
    uint32_t no_preference_ = 0;
    ByName<std::string> device_plugins_;
    std::vector<std::string> conflicts_;
    std::unique_ptr<Reported> reported_ = std::make_unique<Reported>();
};

}  // namespace tessera
