#include "plugin_under_test.hpp"

#include "core/registry/registry.hpp"

#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace tessera::tests {

namespace {

struct Plugin {
    Plugin() : name(text_of("TSR_TEST_PLUGIN", "cpu_avx2")), registry(load(name)) {
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
    static Registry load(const std::string& name) {
        Config config;
        config.default_plugin_folder = false;
        config.plugin_folders = {TSR_PLUGIN_DIR, TSR_TEST_PLUGIN_DIR};
        config.prefer = {name};
        return Registry::load(config, Hardware::detect());
    }
    const tsr_plugin& table() const { return *registry.find_plugin(name)->table; }

    std::string name;
    Registry registry;
    std::vector<std::string> own_flags;
    std::vector<const char*> flags;
};

const Plugin& plugin() {
    static const Plugin kPlugin;
    return kPlugin;
}

}  // namespace

std::span<const tsr_layout* const> layouts_of_plugin() {
    const tsr_plugin& table = plugin().table();
    return {table.layouts, table.layout_count};
}

const tsr_kernel& kernel_of(std::string_view op) {
    const tsr_plugin& table = plugin().table();
    for (uint32_t i = 0; i < table.kernel_count; ++i) {
        if (op == table.kernels[i]->op) return *table.kernels[i];
    }
    throw std::runtime_error("no such kernel");
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
