// Kernels that a step of a short prompt launches on a card: they depend on the step, neither on the size of the cache
// nor on the number of sequences that it could have. On one emulated card.
#include "tests/model/random_models.hpp"
#include "tests/support.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

// Kernels launched on the first card so far, by themselves and as nodes of recordings.
size_t launches() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) throw std::runtime_error("no driver is open");
    const auto calls = reinterpret_cast<size_t (*)(int, const char*)>(dlsym(library, "tesseraEmulatedCalls"));
    return calls(0, "cuLaunchKernel") + calls(0, "cuLaunchKernelEx") + calls(0, "node: kernel");
}

struct Case {
    std::string name;
    std::string golden;   // a model of that name; empty: the random one
    std::string options;  // of make_gguf.py
    uint32_t expand_from;
};

std::ostream& operator<<(std::ostream& out, const Case& test) {
    return out << test.name;
}

// Of a prompt of `tokens` tokens, in steps of 8.
size_t launches_of(const std::filesystem::path& file, const Case& test, uint32_t context, uint32_t sequences,
                   size_t tokens, std::string* first = nullptr) {
    EngineOptions options;
    options.context = context;
    options.sequences = sequences;
    options.rows = std::max(8u, sequences);
    options.threads = 1;
    options.expand_from = test.expand_from;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{".*", "CUDA0"}};
    options.lowerings["mla_attention"] = "3";
    LoadedModel model(file, options, plugins_without({"simulated"}));
    Engine& engine = *model.engine;
    const SequenceId sequence = engine.cache().create();
    std::vector<Token> prompt;
    for (size_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<Token>(4 + i * 7 % 200));
    const size_t before = launches();
    for (size_t at = 0; at < tokens; at += 8) {
        const BatchEntry entry{sequence, std::span(prompt).subspan(at, 8), true};
        const auto logits = engine.step({&entry, 1}).front();
        if (first && at == 0) *first = std::to_string(logits[0]) + " " + std::to_string(logits[100]);
    }
    return launches() - before;
}

class LaunchCounts : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        const Case& test = GetParam();
        file_ = test.golden.empty() ? random_model("launches-" + test.name, test.options)
                                    : std::filesystem::path(std::string(TSR_GOLDENS "/") + test.golden + ".gguf");
    }
    std::filesystem::path file_;
};

// A step that is not recorded: with fewer sequences than it has rows.
TEST_P(LaunchCounts, OfAPromptFollowTheStep) {
    std::string logits;
    const size_t expected = launches_of(file_, GetParam(), 1024, 1, 8, &logits);
    ASSERT_GT(expected, 0u);
    for (const uint32_t context : {256u, 65536u}) {
        for (const uint32_t sequences : {1u, 4u}) {
            std::string found;
            EXPECT_EQ(launches_of(file_, GetParam(), context, sequences, 8, &found), expected)
                << context << " tokens, " << sequences << " sequences";
            EXPECT_EQ(found, logits);
        }
    }
}

// With 16 sequences and more the step's 8 rows may be a recording's.
TEST_P(LaunchCounts, OfARecordingFollowTheStep) {
    const size_t expected = launches_of(file_, GetParam(), 8192, 16, 8);
    for (const uint32_t context : {65536u}) {
        for (const uint32_t sequences : {8u, 32u})
            EXPECT_EQ(launches_of(file_, GetParam(), context, sequences, 8), expected)
                << context << " tokens, " << sequences << " sequences";
    }
}

// Two steps of a prompt take twice as many as one: the second sees no more pages.
TEST_P(LaunchCounts, OfTwoStepsAreTwice) {
    EXPECT_EQ(launches_of(file_, GetParam(), 8192, 4, 16), 2 * launches_of(file_, GetParam(), 8192, 4, 8));
}

constexpr const char* kLatent =
    "--preset tiny-v3 --type f16 --heads 4 --layers 2 --dense 1 --vocab 512 --experts 4 "
    "--used 2 --groups 1 --groups-used 1 --seed 15";

INSTANTIATE_TEST_SUITE_P(Models, LaunchCounts,
                         testing::Values(Case{"projected", "", kLatent, 4}, Case{"absorbed", "", kLatent, 100},
                                         Case{"grouped", "llama-gqa", "", 0}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tessera::test
