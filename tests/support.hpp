// What tests of whole models share: the plugins of the build, and engines with chosen ones.
#pragma once

#include "core/session/engine.hpp"

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>

namespace tessera::test {

inline std::filesystem::path source_dir() { return TSR_SOURCE_DIR; }

// Plugins of the build tree, and nothing else; those named are off.
inline Config plugins_without(std::initializer_list<const char*> off) {
    Config config;
    config.default_plugin_folder = false;
    config.plugin_folders = {TSR_PLUGIN_DIR};
    for (const char* name : off) config.off.emplace_back(name);
    return config;
}

// Hardware, registry and engine in one, for a test's time.
struct LoadedModel {
    LoadedModel(const std::filesystem::path& file, const EngineOptions& options, const Config& config)
        : hardware(Hardware::detect()) {
        apply(config, hardware);
        registry = std::make_unique<Registry>(Registry::load(config, hardware));
        engine = std::make_unique<Engine>(gguf::GgufFile::open(file), *registry, hardware, options);
    }

    Hardware hardware;
    std::unique_ptr<Registry> registry;
    std::unique_ptr<Engine> engine;
};

}  // namespace tessera::test
