#include "core/base/folders.hpp"

#include <cstdlib>

namespace tessera {

std::optional<std::filesystem::path> user_cache_folder() {
    const char* const xdg = std::getenv("XDG_CACHE_HOME");
    const char* const home = std::getenv("HOME");
    std::error_code error;
    // The XDG base directory specification asks to ignore a relative path.
    if (xdg && *xdg == '/') return std::filesystem::path(xdg) / "tessera";
    if (home && *home == '/' && std::filesystem::is_directory(home, error))
        return std::filesystem::path(home) / ".cache" / "tessera";
    return std::nullopt;
}

}  // namespace tessera
