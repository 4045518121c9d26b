// Small files that a flag names: keys, certificates.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::server {

struct GivenFile {
    std::string text;
    bool for_all = false;  // users besides its owner and group may read it
};

// Reads a regular file of at most `most` bytes; opening another kind could wait for whoever writes to it, and reading
// for ever. A byte-order mark at its beginning is left out. Throws Error that begins with the flag and the file.
GivenFile read_given_file(std::string_view flag, const std::filesystem::path& path, uint64_t most);

}  // namespace tessera::server
