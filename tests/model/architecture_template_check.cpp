// A model with the architecture of a plugin that was built out of tree gives the bits that it gives with the core's.
//   architecture_template_check FOLDER PLUGIN MODEL
#include "tests/support.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace tessera::test {
namespace {

struct Run {
    std::vector<float> logits;
    bool says_plugin = false;
};

Run run(const std::filesystem::path& folder, const std::string& plugin, const std::filesystem::path& model,
        bool prefer) {
    Config config = plugins_without({});
    config.plugin_folders.push_back(folder);
    if (prefer) config.prefer = {plugin};
    EngineOptions options;
    options.context = 128;
    options.rows = options.output_rows = 64;
    const LoadedModel loaded(model, options, config);
    std::vector<Token> tokens(64);
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<Token>((i * 37 + 11) % 250);
    const BatchEntry entry{loaded.engine->cache().create(), tokens, true, true};
    Run result;
    for (const auto row : loaded.engine->step({&entry, 1}))
        result.logits.insert(result.logits.end(), row.begin(), row.end());
    const gguf::GgufFile file = gguf::GgufFile::open(model);
    const std::vector<std::string> notes = build_model(file, *loaded.registry, {}).notes;
    result.says_plugin = std::ranges::any_of(
        notes, [&](const std::string& note) { return note.find("that of the plugin " + plugin) != std::string::npos; });
    return result;
}

}  // namespace
}  // namespace tessera::test

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: %s FOLDER PLUGIN MODEL\n", argv[0]);
        return 2;
    }
    try {
        using namespace tessera::test;
        const Run own = run(argv[1], argv[2], argv[3], false), other = run(argv[1], argv[2], argv[3], true);
        if (own.says_plugin || !other.says_plugin) {
            std::fprintf(stderr,
                         "the plugin's architecture is used where it should not be, or is not where it should\n");
            return 1;
        }
        if (own.logits.empty() || own.logits != other.logits) {
            std::fprintf(stderr, "the logits differ from those of the core's architecture\n");
            return 1;
        }
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
