// What tests of whole models share: the plugins of the build, and engines with chosen ones.
#pragma once

#include "core/session/engine.hpp"

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::test {

inline std::filesystem::path source_dir() {
    return TSR_SOURCE_DIR;
}

// A configuration, and GPUs to offer beside those that are here.
struct TestConfig : Config {
    TestConfig(Config config = {}) : Config(std::move(config)) {}  // NOLINT(google-explicit-constructor)

    std::vector<DeviceDescription> gpus;
};

inline void apply(const TestConfig& config, Hardware& hardware) {
    for (const DeviceDescription& gpu : config.gpus) hardware.add(gpu);
    tessera::apply(static_cast<const Config&>(config), hardware);
}

// Of the plugin `simulated`, which no program finds.
inline std::filesystem::path test_plugin_folder() {
    return std::filesystem::path(TSR_PLUGIN_DIR).parent_path() / "test-plugins";
}

// Plugins of the build tree with those for tests, and nothing else; those named are off.
inline Config plugins_without(std::initializer_list<const char*> off) {
    Config config;
    config.default_plugin_folder = false;
    config.plugin_folders = {test_plugin_folder(), TSR_PLUGIN_DIR};
    for (const char* name : off) config.off.emplace_back(name);
    return config;
}

// The same where products and attention run on `name`: a plugin for x86, or "reference" alone.
inline Config plugins_up_to(std::string_view name) {
    if (name == "cpu_avx512") return plugins_without({});
    if (name == "cpu_avx2") return plugins_without({"cpu_avx512"});
    return plugins_without({"cpu_avx2", "cpu_avx512"});
}

// Whether this machine has what a plugin of the build needs.
inline bool runs_here(std::string_view plugin) {
    return Registry::load(plugins_without({}), Hardware::detect()).find_plugin(plugin) != nullptr;
}

// Hardware, registry and engine in one, for a test's time.
struct LoadedModel {
    LoadedModel(const std::filesystem::path& file, const EngineOptions& options, const TestConfig& config)
        : hardware(Hardware::detect()) {
        apply(config, hardware);
        // Where nodes run follows from estimates, which are not to differ from machine to machine.
        hardware.set_speed(2.8e9, 18e9, 160e9);
        registry = std::make_unique<Registry>(Registry::load(config, hardware));
        engine = std::make_unique<Engine>(gguf::GgufFile::open(file), *registry, hardware, options);
    }

    Hardware hardware;
    std::unique_ptr<Registry> registry;
    std::unique_ptr<Engine> engine;
};

}  // namespace tessera::test
