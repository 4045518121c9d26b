// SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace tessera {

// 64 lower-case hexadecimal digits.
std::string sha256_of(std::string_view text);
// Throws what File throws, too.
std::string sha256_of_file(const std::filesystem::path& path);

// Makes letters lower case; false if `digest` is not 64 hexadecimal digits.
bool normalize_sha256(std::string& digest) noexcept;

}  // namespace tessera
