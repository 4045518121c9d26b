// Recognises what people give in place of a GGUF file, for error messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tessera::gguf {

// Bytes of a file's beginning that foreign_contents() looks at.
inline constexpr uint64_t kForeignBytes = 512;

// Says what a file is whose `begin` is not that of a GGUF file, and what to do: "a Git LFS pointer, not the model:
// ...". Empty if it is not known. `size`: bytes of the whole file.
std::string foreign_contents(std::string_view begin, uint64_t size);

// Throws Error for a path that cannot be a GGUF file whatever it holds: a URL (TSR_INVALID_ARGUMENT), unless a file has
// that name, and a folder (TSR_INVALID_ARGUMENT), with what it holds.
void check_model_path(const std::filesystem::path& path);

}  // namespace tessera::gguf
