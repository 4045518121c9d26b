// The files that a kernel source consists of.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::cuda::compiler {

struct SourceFile {
    std::filesystem::path path;
    std::string text;
};

// The sources and all files that they include, directly or not, each once, in the order of first inclusion. Conditions
// are not evaluated, so a file may be listed that no architecture includes. Files that are in none of the folders are
// left out: the compiler reports them if they are needed. Throws std::runtime_error if a source cannot be read.
std::vector<SourceFile> read_sources(const std::vector<std::filesystem::path>& sources,
                                     const std::vector<std::filesystem::path>& include_folders);

// A whole file; throws std::runtime_error.
std::string read_file(const std::filesystem::path& path);

// Written beside and renamed, so that no reader sees a part. Throws std::runtime_error.
void write_file(const std::filesystem::path& path, const std::string& text);

// The same; a file that has this content already keeps its time.
void update_file(const std::filesystem::path& path, const std::string& text);

}  // namespace tessera::cuda::compiler
