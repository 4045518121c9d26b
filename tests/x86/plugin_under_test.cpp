#include "plugin_under_test.hpp"

#include "core/hardware/cpu_flags.hpp"
#include "core/registry/registry.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tessera::tests {

namespace {

// What a program returns that tests a plugin whose flags the processor lacks. CTest takes it for a skipped test.
constexpr int kNotTestedHere = 77;

struct Plugin {
    Plugin() : name(text_of("TSR_TEST_PLUGIN", "cpu_avx2")), registry(load()), table(&table_of(name)) {
        std::istringstream words(text_of("TSR_TEST_CPU_FLAGS", ""));
        for (std::string word; words >> word;) own_flags.push_back(word);
        const auto& from = own_flags.empty() ? host_cpu_flags() : own_flags;
        for (const std::string& flag : from) flags.push_back(flag.c_str());
        flags.push_back(nullptr);
    }
    static std::string text_of(const char* variable, const char* otherwise) {
        const char* text = std::getenv(variable);
        return text && *text ? text : otherwise;
    }
    static Registry load() {
        Config config;
        config.default_plugin_folder = false;
        config.plugin_folders = {TSR_PLUGIN_DIR, TSR_TEST_PLUGIN_DIR};
        return Registry::load(config, Hardware::detect());
    }
    const tsr_plugin& table_of(std::string_view of) const {
        if (const PluginRecord* record = registry.find_plugin(of)) return *record->table;
        std::string why = "no such plugin";
        for (const PluginRecord& record : registry.plugins()) {
            if (record.manifest.name != of) continue;
            why = record.reason;
            const auto& here = host_cpu_flags();
            const auto lacks = [&](const std::string& flag) { return !std::ranges::binary_search(here, flag); };
            if (!std::ranges::any_of(record.manifest.cpu_flags, lacks)) continue;
            std::printf("Not tested here: plugin %s: %s\n", record.manifest.name.c_str(), why.c_str());
            std::fflush(stdout);
            std::_Exit(kNotTestedHere);
        }
        throw std::runtime_error("plugin " + std::string(of) + ": " + why);
    }

    std::string name;
    Registry registry;
    const tsr_plugin* table;
    std::vector<std::string> own_flags;
    std::vector<const char*> flags;
};

const Plugin& plugin() {
    static const Plugin kPlugin;
    return kPlugin;
}

}  // namespace

std::string_view plugin_name() {
    return plugin().name;
}

std::span<const tsr_layout* const> layouts_of_plugin() {
    return {plugin().table->layouts, plugin().table->layout_count};
}

namespace {

const tsr_kernel& kernel_of(std::string_view op, const tsr_plugin& table) {
    for (uint32_t i = 0; i < table.kernel_count; ++i) {
        if (op == table.kernels[i]->op) return *table.kernels[i];
    }
    throw std::runtime_error("no such kernel");
}

}  // namespace

const tsr_kernel& kernel_of(std::string_view op) {
    return kernel_of(op, *plugin().table);
}

const tsr_kernel& kernel_of_avx2(std::string_view op) {
    return kernel_of(op, plugin().table_of("cpu_avx2"));
}

const tsr_layout& layout_of(tsr_type type) {
    for (const tsr_layout* layout : layouts_of_plugin()) {
        if (layout->type == type) return *layout;
    }
    throw std::runtime_error("no layout for this type");
}

tsr_device_info device_of(uint32_t workers) {
    tsr_device_info device{};
    device.struct_size = sizeof device;
    device.kind = "cpu";
    device.threads = workers;
    device.cpu_flags = plugin().flags.data();
    return device;
}

}  // namespace tessera::tests
