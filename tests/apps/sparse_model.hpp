// Models at real shapes whose data is a hole: for plans.
#pragma once

#include "tests/apps/process.hpp"

#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {

// The file that make_gguf.py writes for a preset and an element type, made once for all tests.
inline std::string sparse_model(const std::string& preset, const std::string& type,
                                const std::vector<std::string>& more = {}) {
    namespace fs = std::filesystem;
    std::string name = preset + "-" + type;
    for (const std::string& word : more) name += word;
    const fs::path path = fs::path(TSR_BINARY_DIR) / "tests" / "apps" / (name + ".gguf");
    if (fs::exists(path)) return path.string();
    const fs::path part = path.string() + "." + std::to_string(getpid()) + ".part";
    std::vector<std::string> words = {
        TSR_PYTHON,   TSR_SOURCE_DIR "/testing/make_gguf.py", "--preset", preset, "--type", type, "--sparse", "-o",
        part.string()};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = run_process(words);
    if (outcome.code != 0)
        throw std::runtime_error("make_gguf.py failed (it needs python3 with numpy): " + outcome.err);
    fs::rename(part, path);
    return path.string();
}

}  // namespace tessera::test
