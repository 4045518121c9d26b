#include "core/registry/manifest.hpp"

#include "core/base/toml.hpp"
#include "core/hardware/compute_capability.hpp"
#include "core/registry/names.hpp"
#include "core/registry/sha256.hpp"
#include "core/registry/version.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera {
namespace {

std::string read_name(TomlFile::Table& table, std::string_view key) {
    const std::string name = table.need(table.string(key), key);
    if (!is_name(name)) {
        table.reject(key, fmt::format("expected {}, found '{}'", kNameRule, name));
    }
    return name;
}

std::optional<std::vector<std::string>> read_names(TomlFile::Table& table, std::string_view key) {
    auto names = table.strings(key);
    for (const std::string& name : names.value_or(std::vector<std::string>())) {
        if (!is_name(name)) table.reject(key, fmt::format("'{}' is no name", name));
    }
    return names;
}

std::string read_version(TomlFile::Table& table, std::string_view key, std::string text) {
    if (!parse_version(text)) {
        table.reject(key, fmt::format("expected numbers with points between them, as in \"1.2.0\", found '{}'", text));
    }
    return text;
}

uint32_t read_capability(TomlFile::Table& table, std::string_view key, uint32_t otherwise) {
    const auto text = table.string(key);
    if (!text) return otherwise;
    const auto number = parse_compute_capability(*text);
    if (!number) table.reject(key, fmt::format("expected \"MAJOR.MINOR\", as in \"8.6\", found '{}'", *text));
    return *number;
}

Manifest manifest_of(const TomlFile& file) {
    TomlFile::Table table = file.root();
    Manifest manifest;
    manifest.name = read_name(table, "name");
    manifest.version = read_version(table, "version", table.need(table.string("version"), "version"));

    const std::string abi = table.need(table.string("abi"), "abi");
    const auto numbers = parse_version(abi);
    if (!numbers || numbers->size() != 2) table.reject("abi", fmt::format("expected \"MAJOR.MINOR\", found '{}'", abi));
    manifest.abi_major = (*numbers)[0];
    manifest.abi_minor = (*numbers)[1];

    // A name, not a path: the library is in the manifest's folder, whose trust has been checked.
    manifest.library = read_name(table, "library");
    if (manifest.library == "." || manifest.library == "..") table.reject("library", "expected the name of a file");
    manifest.sha256 = table.need(table.string("sha256"), "sha256");
    if (!normalize_sha256(manifest.sha256)) {
        table.reject("sha256", fmt::format("expected 64 hexadecimal digits, found '{}'", manifest.sha256));
    }
    manifest.summary = table.string("summary").value_or("");

    manifest.kinds = table.need(read_names(table, "kinds"), "kinds");
    manifest.ops = read_names(table, "ops");
    auto flags = read_names(table, "cpu_flags");
    const bool for_cpu = std::find(manifest.kinds.begin(), manifest.kinds.end(), "cpu") != manifest.kinds.end();
    manifest.cpu_flags = for_cpu ? table.need(flags, "cpu_flags") : flags.value_or(std::vector<std::string>());
    manifest.plan_cpu_flags = read_names(table, "plan_cpu_flags").value_or(manifest.cpu_flags);
    for (const std::string& flag : manifest.plan_cpu_flags) {
        if (std::ranges::find(manifest.cpu_flags, flag) == manifest.cpu_flags.end())
            table.reject("plan_cpu_flags", fmt::format("'{}' is not among cpu_flags", flag));
    }

    manifest.minimum_compute_capability = read_capability(table, "minimum_compute_capability", 0);
    manifest.maximum_compute_capability = read_capability(table, "maximum_compute_capability", UINT32_MAX);
    if (manifest.minimum_compute_capability > manifest.maximum_compute_capability) {
        table.reject("minimum_compute_capability", "is above maximum_compute_capability");
    }
    if (auto driver = table.string("minimum_driver"))
        manifest.minimum_driver = read_version(table, "minimum_driver", *driver);
    manifest.priority = static_cast<int32_t>(table.integer("priority", -1000000, 1000000).value_or(0));
    table.finish();
    return manifest;
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::filesystem::path& file) {
    return manifest_of(TomlFile(text, file.string()));
}

Manifest read_manifest(const std::filesystem::path& file) {
    return manifest_of(TomlFile::read(file));
}

}  // namespace tessera
