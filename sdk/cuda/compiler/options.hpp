// What tessera-cuda-compile is asked for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::cuda::compiler {

// Machine code for one architecture: numbers as in sm_61 (10 * major + minor).
struct Target {
    int real = 0;      // of the card
    int virtual_ = 0;  // of the PTX that it is made from: NVRTC's compute_61
};

struct Options {
    std::string name;  // of the module: an identifier
    std::vector<std::filesystem::path> sources, include_folders;
    std::vector<std::string> definitions;  // NAME or NAME=VALUE
    std::vector<Target> targets;
    bool ptx = false;                    // embed the PTX of the newest virtual architecture, too
    std::filesystem::path toolkit;       // has bin/ptxas and lib/ or lib64/ with libnvrtc.so.12
    std::filesystem::path cache;         // folder; empty: none
    std::filesystem::path output;        // the C++ source that embeds the images
    std::filesystem::path dependencies;  // optional: a makefile's rule for `output`
    std::filesystem::path statistics;    // optional: registers, spills and shared memory of each kernel, one a line
    std::filesystem::path ptx_folder;    // optional: where the PTX of each virtual architecture is put, too
};

// Throws std::runtime_error that says what was expected.
Options parse_options(int count, const char* const* arguments);

// "61", or "90@61" for code for sm_90 that is made from compute_61.
Target parse_target(const std::string& text);

extern const char* const kUsage;

}  // namespace tessera::cuda::compiler
