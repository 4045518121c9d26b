// The models of this folder, by their names. The build computes their weights.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

inline std::filesystem::path golden_model(std::string_view name) {
    return std::filesystem::path(TSR_GOLDENS) / (std::string(name) + ".gguf");
}

// Those whose logits are recorded, sorted.
inline std::vector<std::string> golden_models() {
    constexpr std::string_view kEnd = ".short.golden.gguf";
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(TSR_SOURCE_DIR "/tests/goldens")) {
        const std::string file = entry.path().filename().string();
        if (file.ends_with(kEnd)) names.push_back(file.substr(0, file.size() - kEnd.size()));
    }
    std::ranges::sort(names);
    return names;
}

}  // namespace tessera::test
