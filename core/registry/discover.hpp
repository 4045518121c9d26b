// Finds plugins and decides which can be used. Inside this folder only.
#pragma once

#include "core/registry/registry.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// The folder that belongs to the running executable: ../lib/tessera/plugins, relative to the executable's folder.
std::filesystem::path default_plugin_folder();

// The user's own: $XDG_DATA_HOME/tessera/plugins, or ~/.local/share/tessera/plugins. Nothing if there is no such
// folder.
std::optional<std::filesystem::path> user_plugin_folder();

// A record for every manifest and every library without one, folder by folder; within a folder by name, higher versions
// first, then by file name. Those with the state kChosen are candidates: no check has rejected them yet.
std::vector<PluginRecord> find_plugins(const std::vector<std::filesystem::path>& folders);

// Returns why this config and hardware have no use for a candidate, by its manifest; empty if no check rejects it.
std::string why_unsuitable(const PluginRecord& record, const Config& config, const Hardware& hardware);
// Returns why its library must not be mapped: owner, mode, size, hash; empty if no check rejects it. Throws Error and
// std::filesystem::filesystem_error for a library that cannot be read.
std::string why_refused(const PluginRecord& record);

// Whether this machine's processor lacks flags of its kernels.
bool is_for_plans_only(const Manifest& manifest);

// The plugin's library, beside its manifest, without symbolic links. Throws std::filesystem::filesystem_error.
std::filesystem::path library_path(const PluginRecord& record);

}  // namespace tessera
