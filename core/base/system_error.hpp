// The system's error about a file, as an Error.
#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

// Throws Error "PATH: cannot WHAT: REASON". `error`: of errno. TSR_NOT_FOUND if there is no such file, else
// TSR_IO_ERROR.
[[noreturn]] void fail_system(int error, const std::filesystem::path& path, std::string_view what);

}  // namespace tessera
