// Weights that are packed between steps: whatever has been packed so far, the logits keep every bit.
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kPrompt = 70, kSteps = 3;

Token token(int i) {
    return (i * 37 + 11) % 200;
}

EngineOptions options_with(PackWeights pack) {
    EngineOptions options;
    options.context = 128;
    options.rows = 64;
    options.pack_weights = pack;
    return options;
}

std::vector<float> feed(Engine& engine, SequenceId sequence, const std::vector<Token>& tokens) {
    const auto last = engine.prefill(sequence, tokens);
    return {last.begin(), last.end()};
}

// Of a prompt of two steps, then of a few tokens.
std::vector<float> logits_of(Engine& engine) {
    const SequenceId sequence = engine.cache().create();
    std::vector<Token> tokens;
    for (int i = 0; i < kPrompt; ++i) tokens.push_back(token(i));
    std::vector<float> all = feed(engine, sequence, tokens);
    for (int i = 0; i < kSteps; ++i) {
        const std::vector<float> one = feed(engine, sequence, {token(kPrompt + i)});
        all.insert(all.end(), one.begin(), one.end());
    }
    engine.cache().remove(sequence);
    return all;
}

class DeferredPacking : public testing::TestWithParam<std::tuple<const char*, const char*>> {
  protected:
    void SetUp() override {
        if (!test::runs_here(plugin())) GTEST_SKIP() << "this processor cannot run " << plugin();
    }
    const char* plugin() const { return std::get<1>(GetParam()); }
    fs::path model() const { return test::source_dir() / std::get<0>(GetParam()); }
    Config config() const { return test::plugins_up_to(plugin()); }
};

TEST_P(DeferredPacking, KeepsEveryBitAtEachPointOfTheWay) {
    const test::LoadedModel first(model(), options_with(PackWeights::kAtLoad), config());
    EXPECT_TRUE(first.engine->plan().deferred.empty());
    EXPECT_EQ(first.engine->packing().total_bytes, 0u);
    const std::vector<float> wanted = logits_of(*first.engine);

    const EngineOptions lazily = options_with(PackWeights::kBetweenSteps);
    size_t weights = 0;
    uint64_t total = 0;
    {
        const test::LoadedModel loaded(model(), lazily, config());
        weights = loaded.engine->plan().deferred.size();
        total = loaded.engine->packing().total_bytes;
        EXPECT_EQ(loaded.engine->packing().done_bytes, 0u) << "steps that only warm up pack nothing";
        EXPECT_EQ(logits_of(*loaded.engine), wanted);
        EXPECT_GT(loaded.engine->packing().done_bytes, 0u) << "steps after the first do";
    }
    EXPECT_GT(weights, 10u);
    for (size_t before = 1; before <= weights; ++before) {
        const test::LoadedModel loaded(model(), lazily, config());
        Engine& engine = *loaded.engine;
        for (size_t k = 0; k < before; ++k) engine.pack_one();
        const uint64_t done = engine.packing().done_bytes;
        ASSERT_EQ(done == total, before == weights);
        ASSERT_EQ(logits_of(engine), wanted) << before << " of " << weights << " weights packed before the first step";
        ASSERT_GE(engine.packing().done_bytes, done);
        for (size_t k = 0; k < weights; ++k) engine.pack_one();  // more than are left
        ASSERT_EQ(engine.packing().done_bytes, total);
        ASSERT_EQ(logits_of(engine), wanted) << "all packed";
    }
}

TEST_P(DeferredPacking, EndsWithTheMemoryOfPackingAtLoad) {
    const test::LoadedModel first(model(), options_with(PackWeights::kAtLoad), config()),
        later(model(), options_with(PackWeights::kBetweenSteps), config());
    const Plan &a = first.engine->plan(), &b = later.engine->plan();
    EXPECT_EQ(a.memory[0].allocated(), b.memory[0].allocated());
    EXPECT_EQ(a.memory[0].mapped, b.memory[0].mapped);
    // Matrices come before stacks of experts, of which a step reads few rows.
    bool stacked = false;
    for (const InstanceId id : b.deferred) {
        const std::string& name = b.graph.storage(b.instances[id].storage).name;
        if (name.find("_b.weight") != std::string::npos) continue;  // a matrix a head
        const bool experts = name.find("_exps") != std::string::npos;
        EXPECT_FALSE(stacked && !experts) << name;
        stacked = experts;
    }
}

INSTANTIATE_TEST_SUITE_P(Files, DeferredPacking,
                         testing::Combine(testing::Values("models/demo-tessera-10m.gguf", TSR_GOLDENS "/v3-groups.gguf",
                                                          TSR_GOLDENS "/llama-gqa.gguf"),
                                          testing::Values("cpu_avx2", "cpu_avx512")),
                         [](const auto& instance) {
                             std::string name = fs::path(std::get<0>(instance.param)).stem().string() + "_" +
                                                std::get<1>(instance.param);
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// Weights that have to be read or locked, or are packed in the file, are complete before the first step.
TEST(DeferredPackingRules, OnlyForWeightsInTheMappedFile) {
    if (!test::runs_here("cpu_avx2")) GTEST_SKIP() << "this processor cannot run cpu_avx2";
    const fs::path model = test::source_dir() / "models/demo-tessera-10m.gguf";
    for (const bool mapped : {true, false}) {
        for (const bool locked : {true, false}) {
            EngineOptions options = options_with(PackWeights::kBetweenSteps);
            options.map_weights = mapped;
            options.lock_memory = locked;
            const test::LoadedModel loaded(model, options, test::plugins_up_to("cpu_avx2"));
            EXPECT_EQ(loaded.engine->plan().deferred.empty(), !mapped || locked);
        }
    }
}

}  // namespace
}  // namespace tessera
