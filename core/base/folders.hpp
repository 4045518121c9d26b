// Folders of the user that runs the process.
#pragma once

#include <filesystem>
#include <optional>

namespace tessera {

// The user's folder for what can be made again, $XDG_CACHE_HOME/tessera or ~/.cache/tessera; it need not exist. Nothing
// if neither the variable nor a home is an absolute path.
std::optional<std::filesystem::path> user_cache_folder();

}  // namespace tessera
