// Whether a file may be mapped: docs/plugin-manifest.md has the rules.
#pragma once

#include <filesystem>
#include <string>

namespace tessera {

// Why the file and its folder are not trusted; empty if they are. `file` has no symbolic links left in it.
std::string why_distrust(const std::filesystem::path& file);

}  // namespace tessera
