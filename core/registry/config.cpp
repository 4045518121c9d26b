#include "core/registry/config.hpp"

#include "core/base/error.hpp"
#include "core/base/pattern.hpp"
#include "core/base/text.hpp"
#include "core/base/toml.hpp"
#include "core/registry/sha256.hpp"

#include <algorithm>
#include <cstdlib>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxThreads = 4096;
constexpr size_t kMaxLogical = 16;

void read_plugins(TomlFile::Table table, Config& config) {
    config.default_plugin_folder = table.boolean("default_folder").value_or(true);
    for (const fs::path folder : table.strings("folders").value_or(std::vector<std::string>())) {
        if (folder.empty()) table.reject("folders", "holds an empty name");
        config.plugin_folders.push_back((fs::absolute(config.file).parent_path() / folder).lexically_normal());
    }
    config.prefer = table.strings("prefer").value_or(std::vector<std::string>());
    config.off = table.strings("off").value_or(std::vector<std::string>());
    for (const std::string& name : config.prefer) {
        if (std::find(config.off.begin(), config.off.end(), name) != config.off.end()) {
            table.reject("off", fmt::format("'{}' is in 'prefer' too: it cannot be both", name));
        }
        if (std::count(config.prefer.begin(), config.prefer.end(), name) > 1) {
            table.reject("prefer", fmt::format("'{}' occurs twice", name));
        }
    }
    config.allowed_sha256 = table.strings("allowed_sha256");
    if (config.allowed_sha256) {
        for (std::string& digest : *config.allowed_sha256) {
            if (!normalize_sha256(digest)) {
                table.reject("allowed_sha256", fmt::format("expected 64 hexadecimal digits, found '{}'", digest));
            }
        }
    }
    table.finish();
}

// Ids of devices are the same in small letters.
bool same_id(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    return std::ranges::equal(a, b, {}, lower, lower);
}

void read_devices(TomlFile::Table table, Config& config) {
    for (const std::string& id : table.keys()) {
        TomlFile::Table entry = table.need(table.table(id), id);
        const bool is_cpu = id == "CPU" || id == "cpu";
        for (const auto& [other, unused] : config.devices) {
            if (same_id(other, id)) table.reject(id, fmt::format("the device has a table already, as '{}'", other));
        }
        DeviceConfig device;
        const auto plugin = entry.string("plugin");
        if (plugin && plugin->empty()) entry.reject("plugin", "expected the name of a plugin, found nothing");
        device.plugin = plugin.value_or("");
        if (!device.plugin.empty() && is_cpu) {
            entry.reject("plugin",
                         "the CPU takes kernels from every plugin: name those that go first in plugins.prefer");
        }
        device.memory_bytes = entry.size("memory");
        for (TomlFile::Table& part : entry.tables("logical")) {
            if (is_cpu) entry.reject("logical", "only a GPU can be offered as several devices");
            if (device.logical.size() == kMaxLogical)
                entry.reject("logical", fmt::format("more than {} parts of one GPU", kMaxLogical));
            device.logical.push_back({part.string("plugin").value_or(""), part.size("memory")});
            part.finish();
        }
        if (!device.plugin.empty() && !device.logical.empty())
            entry.reject("plugin", "the GPU is offered as logical devices: name a plugin for each of them");
        entry.finish();
        config.devices.emplace(id, std::move(device));
    }
}

void read_placement(TomlFile::Table table, Config& config) {
    PlacementRule rule;
    rule.pattern = table.need(table.string("tensors"), "tensors");
    rule.device = table.need(table.string("device"), "device");
    if (rule.pattern.empty()) table.reject("tensors", "expected a regular expression, found nothing");
    try {
        const Pattern pattern(rule.pattern);
    } catch (const Error& error) {
        table.reject("tensors", error.what());
    }
    table.finish();
    config.placement.push_back(std::move(rule));
}

Config read(const TomlFile& toml, const fs::path& file) {
    Config config;
    config.file = file;
    TomlFile::Table root = toml.root();
    config.threads = static_cast<uint32_t>(root.integer("threads", 0, kMaxThreads).value_or(0));
    config.keep_speeds = root.boolean("keep_speeds").value_or(true);
    if (const auto table = root.table("plugins")) read_plugins(*table, config);
    if (const auto table = root.table("devices")) read_devices(*table, config);
    for (const TomlFile::Table& table : root.tables("placement")) read_placement(table, config);
    root.finish();
    return config;
}

}  // namespace

Config read_config(const fs::path& file) {
    return read(TomlFile::read(file), file);
}

Config parse_config(std::string_view text, const fs::path& file) {
    return read(TomlFile(text, file.string()), file);
}

std::optional<fs::path> default_config_file() {
    std::vector<fs::path> candidates;
    const char* const xdg = std::getenv("XDG_CONFIG_HOME");
    const char* const home = std::getenv("HOME");
    // The XDG base directory specification asks to ignore a relative path.
    if (xdg && fs::path(xdg).is_absolute()) {
        candidates.push_back(fs::path(xdg) / "tessera/config.toml");
    } else if (home && fs::path(home).is_absolute()) {
        candidates.push_back(fs::path(home) / ".config/tessera/config.toml");
    }
    candidates.push_back("/etc/tessera/config.toml");
    for (const fs::path& file : candidates) {
        std::error_code error;
        if (fs::exists(file, error)) return file;
    }
    return std::nullopt;
}

namespace {

void need_device(const Config& config, const Hardware& hardware, std::string_view table, const std::string& id) {
    if (hardware.find(id)) return;
    std::string ids;
    for (const tsr_device_info* info : hardware.devices()) ids += (ids.empty() ? "" : ", ") + std::string(info->id);
    fail(TSR_NOT_FOUND, "{}: {} names a device that is not here; there are: {}", config.file.string(), table, ids);
}

}  // namespace

void apply(const Config& config, Hardware& hardware) {
    if (hardware.is_rig()) return;
    if (config.threads > 0) hardware.set_threads(config.threads);
    for (const auto& [id, device] : config.devices) {
        need_device(config, hardware, fmt::format("[devices.{}]", printable(id)), id);
        if (device.memory_bytes) hardware.limit_memory(id, *device.memory_bytes);
        if (device.logical.empty()) continue;
        std::vector<uint64_t> parts;
        for (const LogicalDevice& part : device.logical) parts.push_back(part.memory_bytes.value_or(0));
        try {
            hardware.split_gpu(id, parts);
        } catch (const Error& error) {
            fail(error.code(), "{}: [[devices.{}.logical]]: {}", config.file.string(), id, error.what());
        }
    }
    for (const PlacementRule& rule : config.placement)
        need_device(config, hardware, fmt::format("[[placement]] device = '{}'", printable(rule.device)), rule.device);
}

}  // namespace tessera
