#include "core/registry/discover.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/text.hpp"
#include "core/hardware/compute_capability.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/registry/sha256.hpp"
#include "core/registry/trust.hpp"
#include "core/registry/version.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxLibraryBytes = uint64_t{1} << 30;  // hashed in a second or two

PluginRecord rejected(fs::path path, std::string reason) {
    PluginRecord record;
    record.path = std::move(path);
    record.reason = std::move(reason);
    return record;
}

PluginRecord read_record(const fs::path& file) {
    PluginRecord record;
    record.path = file;
    try {
        // Links are followed, so that the library is searched for in the folder of the target.
        record.path = fs::canonical(file);
        record.reason = why_distrust(record.path);
        if (record.reason.empty()) {
            record.manifest = read_manifest(record.path);
            record.state = PluginState::kChosen;
        }
    } catch (const std::exception& error) {
        record.reason = error.what();
    }
    return record;
}

bool goes_before(const PluginRecord& a, const PluginRecord& b) {
    const auto name = [](const PluginRecord& r) {
        return r.manifest.name.empty() ? r.path.stem().string() : r.manifest.name;
    };
    if (name(a) != name(b)) return name(a) < name(b);
    const auto version_a = parse_version(a.manifest.version), version_b = parse_version(b.manifest.version);
    if (version_a != version_b) return version_a > version_b;
    return a.path < b.path;
}

std::vector<PluginRecord> find_in_folder(const fs::path& folder) {
    if (!folder.is_absolute()) return {rejected(folder, "plugins are looked for in absolute folders only")};
    std::vector<PluginRecord> records;
    std::vector<fs::path> libraries;
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const fs::path& file = at->path();
        if (file.extension() == ".toml") records.push_back(read_record(file));
        if (file.extension() == ".so") libraries.push_back(file);
    }
    if (error) return {rejected(folder, fmt::format("the folder cannot be read: {}", error.message()))};

    std::set<fs::path> named;
    for (const PluginRecord& record : records) {
        fs::path manifest = record.path;
        named.insert(manifest.replace_extension(".so"));  // also where the manifest could not be read
        if (!record.manifest.library.empty()) named.insert(record.path.parent_path() / record.manifest.library);
    }
    for (const fs::path& library : libraries) {
        const fs::path target = fs::canonical(library, error);
        if (named.contains(library) || named.contains(target)) continue;
        records.push_back(rejected(library, "no manifest beside it names this library"));
    }
    std::sort(records.begin(), records.end(), goes_before);
    return records;
}

bool serves(const Manifest& manifest, const tsr_device_info& device) {
    return std::find(manifest.kinds.begin(), manifest.kinds.end(), device.kind) != manifest.kinds.end();
}

std::string why_no_device(const Manifest& manifest, const Hardware& hardware) {
    if (manifest.kinds.empty()) return {};
    std::string seen;
    for (const tsr_device_info* device : hardware.devices()) {
        if (!serves(manifest, *device)) continue;
        const uint32_t found = device->compute_capability;
        // A processor has no compute capability.
        if (std::string_view(device->kind) == "cpu") return {};
        const bool new_enough = found >= manifest.minimum_compute_capability;
        if (new_enough && found <= manifest.maximum_compute_capability) return {};
        seen += fmt::format("{}{}: compute capability {}, {} {} needed", seen.empty() ? "" : "; ", device->id,
                            compute_capability_text(found), new_enough ? "at most" : "at least",
                            compute_capability_text(new_enough ? manifest.maximum_compute_capability
                                                               : manifest.minimum_compute_capability));
    }
    return seen.empty() ? fmt::format("no device of kind {} here", joined(manifest.kinds)) : seen;
}

std::vector<std::string> missing_here(const std::vector<std::string>& flags) {
    std::vector<std::string> missing;
    for (const std::string& flag : flags) {
        if (!std::ranges::binary_search(host_cpu_flags(), flag)) missing.push_back(flag);
    }
    return missing;
}

std::string why_no_flags(const Manifest& manifest, const Hardware& hardware) {
    std::vector<std::string> missing_there;
    for (const std::string& flag : manifest.cpu_flags) {
        if (!has_cpu_flag(hardware.cpu(), flag)) missing_there.push_back(flag);
    }
    if (!missing_there.empty()) {
        return fmt::format("the processor ({}) lacks {}; needed are {}", hardware.cpu().name, joined(missing_there),
                           joined(manifest.cpu_flags));
    }
    const std::vector<std::string> missing =
        missing_here(hardware.is_rig() ? manifest.plan_cpu_flags : manifest.cpu_flags);
    if (missing.empty()) return {};
    return fmt::format("the processor of this machine lacks {}, so the library cannot be asked about another one",
                       joined(missing));
}

std::string why_driver(const Manifest& manifest, const Hardware& hardware) {
    const auto needed = parse_version(manifest.minimum_driver);
    const auto found = parse_version(hardware.gpu_driver());
    if (!needed || hardware.is_rig() || (found && *found >= *needed)) return {};
    return fmt::format("needs NVIDIA driver {} or later, found {}", manifest.minimum_driver,
                       hardware.gpu_driver().empty() ? "one that does not tell its version" : hardware.gpu_driver());
}

std::string why_not_allowed(const Manifest& manifest, const Config& config) {
    if (!config.allowed_sha256 ||
        std::ranges::find(*config.allowed_sha256, manifest.sha256) != config.allowed_sha256->end())
        return {};
    return fmt::format("its hash {} is not among plugins.allowed_sha256 of {}", manifest.sha256, config.file.string());
}

}  // namespace

fs::path default_plugin_folder() {
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error);
    return (executable.parent_path().parent_path() / TSR_PLUGIN_FOLDER).lexically_normal();
}

std::optional<fs::path> user_plugin_folder() {
    fs::path data;
    // The XDG base directory specification asks to ignore a relative path.
    if (const char* const xdg = std::getenv("XDG_DATA_HOME"); xdg && *xdg == '/') {
        data = xdg;
    } else if (const char* const home = std::getenv("HOME"); home && *home == '/') {
        data = fs::path(home) / ".local" / "share";
    } else {
        return std::nullopt;
    }
    std::error_code error;
    const fs::path folder = data / "tessera" / "plugins";
    if (!fs::is_directory(folder, error)) return std::nullopt;
    return folder;
}

fs::path library_path(const PluginRecord& record) {
    return fs::canonical(record.path.parent_path() / record.manifest.library);
}

std::vector<PluginRecord> find_plugins(const std::vector<fs::path>& folders) {
    std::vector<PluginRecord> records;
    for (const fs::path& folder : folders) {
        std::vector<PluginRecord> found = find_in_folder(folder);
        std::move(found.begin(), found.end(), std::back_inserter(records));
    }
    return records;
}

bool is_for_plans_only(const Manifest& manifest) {
    return !missing_here(manifest.cpu_flags).empty();
}

std::string why_unsuitable(const PluginRecord& record, const Config& config, const Hardware& hardware) {
    const Manifest& manifest = record.manifest;
    if (manifest.abi_major != TSR_ABI_MAJOR || manifest.abi_minor > TSR_ABI_MINOR) {
        return fmt::format("its manifest says ABI {}.{}; this host takes {}.0 to {}.{}", manifest.abi_major,
                           manifest.abi_minor, TSR_ABI_MAJOR, TSR_ABI_MAJOR, TSR_ABI_MINOR);
    }
    if (std::string why = why_no_device(manifest, hardware); !why.empty()) return why;
    if (std::string why = why_no_flags(manifest, hardware); !why.empty()) return why;
    if (std::string why = why_driver(manifest, hardware); !why.empty()) return why;
    return why_not_allowed(manifest, config);
}

std::string why_refused(const PluginRecord& record) {
    const Manifest& manifest = record.manifest;
    const fs::path library = library_path(record);
    if (std::string why = why_distrust(library); !why.empty()) return why;
    if (const uint64_t bytes = File(library).size(); bytes > kMaxLibraryBytes) {
        return fmt::format("{} has {} bytes; a library of more than {} is not loaded", library.filename().string(),
                           bytes, kMaxLibraryBytes);
    }
    const std::string digest = sha256_of_file(library);
    if (digest == manifest.sha256) return {};
    return fmt::format("the manifest says SHA-256 {}, {} has {}: was it changed, or built without its manifest?",
                       manifest.sha256, library.filename().string(), digest);
}

}  // namespace tessera
