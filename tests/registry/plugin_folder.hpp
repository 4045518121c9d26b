// A temporary folder with plugins made from the fixtures.
#pragma once

#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"
#include "core/registry/sha256.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace tessera::test {

namespace fs = std::filesystem;

using Keys = std::map<std::string, std::string>;  // of a manifest, with values as TOML

class PluginFolder {
  public:
    PluginFolder() { setenv("TSR_TEST_MARKERS", markers().c_str(), 1); }

    const fs::path& path() const { return folder_.path(); }
    fs::path markers() const { return path() / "markers.txt"; }

    // Whether the library of a fixture was mapped while this folder was the latest.
    bool was_mapped(const std::string& fixture) const {
        std::ifstream in(markers());
        for (std::string line; std::getline(in, line);) {
            if (line == fixture) return true;
        }
        return false;
    }

    // The fixture's library and a manifest that fits it but for `changes` (an empty value takes the key out). Gives the
    // manifest's path. `file` is what both files are called; the fixture's name if empty.
    fs::path add(const std::string& fixture, const Keys& changes = {}, std::string file = "") {
        if (file.empty()) file = fixture;
        const fs::path library = path() / (file + ".so");
        fs::copy_file(fs::path(TSR_FIXTURES) / (fixture + ".so"), library);
        Keys keys = {{"name", quoted(fixture)},
                     {"version", quoted("1.2.0")},
                     {"abi", quoted("1.0")},
                     {"library", quoted(file + ".so")},
                     {"sha256", quoted(sha256_of_file(library))},
                     {"kinds", fixture.rfind("owner", 0) == 0 ? R"(["cpu", "cuda"])" : R"(["cpu"])"},
                     {"cpu_flags", "[]"},
                     {"ops", R"(["add", "mul", "fixture_op"])"}};
        for (const auto& [key, value] : changes) keys[key] = value;
        std::string text;
        for (const auto& [key, value] : keys) text += value.empty() ? "" : key + " = " + value + "\n";
        return write(file + ".toml", text);
    }

    fs::path write(const std::string& file, const std::string& text) { return folder_.write(file, text); }

    Config config() const {
        Config config;
        config.default_plugin_folder = false;
        config.plugin_folders = {path()};
        return config;
    }

    static std::string quoted(const std::string& text) { return '"' + text + '"'; }

  private:
    TemporaryFolder folder_;
};

// A processor with the flags of this one, and GPUs of the given compute capabilities.
inline Hardware small_machine(std::initializer_list<uint32_t> gpus = {}) {
    DeviceDescription cpu;
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.name = "Test processor";
    cpu.cpu_flags = host_cpu_flags();
    cpu.threads = 2;
    cpu.numa_nodes = 1;
    cpu.memory_bytes = cpu.free_memory_bytes = uint64_t{8} << 30;
    Hardware hardware({cpu});
    for (const uint32_t capability : gpus) {
        DeviceDescription gpu;
        gpu.kind = "cuda";
        gpu.id = "SIM" + std::to_string(hardware.devices().size() - 1);
        gpu.name = "Test GPU";
        gpu.compute_capability = capability;
        gpu.memory_bytes = gpu.free_memory_bytes = uint64_t{4} << 30;
        hardware.add(gpu);
    }
    return hardware;
}

inline const PluginRecord& record_of(const Registry& registry, const fs::path& manifest) {
    for (const PluginRecord& record : registry.plugins()) {
        if (record.path == manifest) return record;
    }
    throw std::runtime_error("no record of " + manifest.string());
}

}  // namespace tessera::test
