// expand_goldens FROM TO: writes TO/NAME.gguf for each FROM/NAME.seeded.gguf, and removes models of TO that FROM does
// not have.
#include "tests/goldens/seeded_model.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
    namespace fs = std::filesystem;
    constexpr std::string_view kEnd = ".seeded.gguf";
    if (argc != 3) {
        std::fprintf(stderr, "usage: expand_goldens FROM TO\n");
        return 2;
    }
    try {
        const fs::path from = argv[1], to = argv[2];
        fs::create_directories(to);
        std::set<fs::path> made;
        for (const auto& entry : fs::directory_iterator(from)) {
            const std::string file = entry.path().filename().string();
            if (!file.ends_with(kEnd)) continue;
            const fs::path model = to / (file.substr(0, file.size() - kEnd.size()) + ".gguf");
            tessera::test::write_seeded_model(tessera::gguf::GgufFile::open(entry.path()), model);
            made.insert(model);
        }
        for (const auto& entry : fs::directory_iterator(to)) {
            if (entry.path().extension() == ".gguf" && !made.contains(entry.path())) fs::remove(entry.path());
        }
        return made.empty() ? 1 : 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
