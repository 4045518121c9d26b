// The configuration file. docs/configuration.md describes it for users.
#pragma once

#include "core/hardware/hardware.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct PlacementRule {
    std::string pattern;  // a regular expression that tensor names are searched for
    std::string device;   // an id: "CPU", "CUDA0"
};

// A part of a GPU that is offered as a device of its own.
struct LogicalDevice {
    std::string plugin;                    // as of DeviceConfig
    std::optional<uint64_t> memory_bytes;  // none: an equal share of what the other parts leave
};

struct DeviceConfig {
    std::string plugin;                    // that must own the device; empty: the best that matches
    std::optional<uint64_t> memory_bytes;  // at most this much of it is used
    // The device is offered as these instead: "CUDA0.0", "CUDA0.1", ...
    std::vector<LogicalDevice> logical;
};

struct Config {
    std::filesystem::path file;  // that it was read from; empty: defaults

    bool default_plugin_folder = true;                  // look beside the executable first
    std::vector<std::filesystem::path> plugin_folders;  // absolute
    std::vector<std::string> prefer;                    // plugin names, best first; one that cannot be used is an error
    std::vector<std::string> off;                       // plugin names that are never mapped
    std::optional<std::vector<std::string>> allowed_sha256;  // if given, no other library is mapped

    std::map<std::string, DeviceConfig, std::less<>> devices;  // by id
    uint32_t threads = 0;                                      // 0: the physical cores
    bool keep_speeds = true;  // what runs reach of their predicted speed is kept for later ones (earlier_runs.hpp)
    std::vector<PlacementRule> placement;  // the first that matches counts
};

// Throws what File throws, or Error(TSR_CORRUPT_DATA) naming file, line and key; an unknown key is one.
Config read_config(const std::filesystem::path& file);

// The same from text. `file` is for messages; relative paths in the text are relative to its folder.
Config parse_config(std::string_view text, const std::filesystem::path& file);

// The user's file ($XDG_CONFIG_HOME/tessera/config.toml, else ~/.config/tessera/config.toml), else
// /etc/tessera/config.toml; nothing if neither exists.
std::optional<std::filesystem::path> default_config_file();

// Sets the threads of `hardware`, applies memory limits and splits GPUs into logical devices. Throws
// Error(TSR_NOT_FOUND) if the config names a device that does not exist, and Error(TSR_INVALID_ARGUMENT) if parts of a
// GPU ask for more memory than it has.
void apply(const Config& config, Hardware& hardware);

}  // namespace tessera
