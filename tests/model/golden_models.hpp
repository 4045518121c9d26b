// The models of tests/goldens, by their names.
#pragma once

#include "tests/support.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

inline std::filesystem::path golden_model(std::string_view name) {
    return source_dir() / "tests/goldens" / (std::string(name) + ".gguf");
}

// Those whose logits are recorded, sorted.
inline std::vector<std::string> golden_models() {
    constexpr std::string_view kEnd = ".short.golden.gguf";
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "tests/goldens")) {
        const std::string file = entry.path().filename().string();
        if (file.ends_with(kEnd)) names.push_back(file.substr(0, file.size() - kEnd.size()));
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace tessera::test
