// Models with random weights, written by make_gguf.py of the shared folder into the build folder, once.
#pragma once

#include <filesystem>
#include <string>

namespace tessera::test {

// `options` of the script without its -o; `name` is one to each options. For a file in parts (--split) the name of a
// part is made from the returned path: part(). Throws std::runtime_error with what the script said.
std::filesystem::path random_model(const std::string& name, const std::string& options);

std::filesystem::path part(const std::filesystem::path& model, int number, int count);

}  // namespace tessera::test
