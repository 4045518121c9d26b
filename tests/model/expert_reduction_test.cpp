// Fewer experts (-ser): exact where the result is known otherwise, and the same for prompts of any length.
#include "core/gguf/reader.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

struct Model {
    const char* file;
    const char* used_key;
    uint32_t used;
};
// Without a bias on selection the weights fall, so that a ratio of 1 keeps the first ones alone.
constexpr Model kModels[] = {{"v2-groups.gguf", "deepseek2.expert_used_count", 3},
                             {"qwen3moe-norm.gguf", "qwen3moe.expert_used_count", 3},
                             {"qwen3moe-plain.gguf", "qwen3moe.expert_used_count", 4}};

std::filesystem::path golden(const char* name) {
    return std::filesystem::path(TSR_GOLDENS) / name;
}

// Of these no expert is nearly as good as another, or nearly at a ratio, where roundings would choose.
std::vector<Token> some_tokens(size_t count, uint32_t vocabulary) {
    std::mt19937 random(8);
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = static_cast<Token>(random() % vocabulary);
    return tokens;
}

// Logits of all tokens, fed in steps of `step` rows.
std::vector<float> logits_of(Engine& engine, const std::vector<Token>& tokens, size_t step) {
    std::vector<float> all;
    const SequenceId sequence = engine.cache().create();
    for (size_t at = 0; at < tokens.size(); at += step) {
        const BatchEntry entry{sequence, std::span(tokens).subspan(at, std::min(step, tokens.size() - at)), true, true};
        for (const auto row : engine.step({&entry, 1})) all.insert(all.end(), row.begin(), row.end());
    }
    engine.cache().remove(sequence);
    return all;
}

EngineOptions options_with(ExpertReduction experts) {
    EngineOptions options;
    options.context = 128;
    options.rows = 64;
    options.output_rows = 64;
    options.expand_from = 1000;  // one variant of attention for all lengths
    options.experts = experts;
    return options;
}

TEST(ExpertReduction, WithARatioOfOneIsTheModelWithFewerExperts) {
    const Hardware hardware = Hardware::detect();
    for (const auto& off :
         {std::initializer_list<const char*>{}, std::initializer_list<const char*>{"cpu_avx2", "cpu_avx512"}}) {
        const Registry registry = Registry::load(plugins_without(off), hardware);
        for (const Model& model : kModels) {
            for (uint32_t least = 1; least < model.used; ++least) {
                SCOPED_TRACE(std::string(model.file) + ", " + std::to_string(least) + " experts at least");
                const gguf::Override fewer =
                    gguf::parse_override(std::string(model.used_key) + "=int:" + std::to_string(least));
                Engine expected(gguf::GgufFile::open(golden(model.file), {&fewer, 1}), registry, hardware,
                                options_with({}));
                Engine reduced(gguf::GgufFile::open(golden(model.file)), registry, hardware,
                               options_with({least, 1.0}));
                for (const size_t length : {1, 2, 3, 7, 33, 64}) {
                    const std::vector<Token> tokens = some_tokens(length, reduced.info().vocabulary);
                    EXPECT_EQ(logits_of(reduced, tokens, length), logits_of(expected, tokens, length))
                        << length << " tokens";
                }
            }
        }
    }
}

// The reference computes each row independently; faster kernels of attention round differently for one row and for
// many.
TEST(ExpertReduction, DoesNotDependOnHowAPromptIsFed) {
    const Hardware hardware = Hardware::detect();
    for (const bool fast : {false, true}) {
        const Registry registry =
            Registry::load(fast ? plugins_without({}) : plugins_without({"cpu_avx2", "cpu_avx512"}), hardware);
        for (const char* file : {"v2-groups.gguf", "v3-groups.gguf", "qwen3moe-norm.gguf"}) {
            SCOPED_TRACE(std::string(file) + (fast ? ", fast" : ", reference"));
            Engine engine(gguf::GgufFile::open(golden(file)), registry, hardware, options_with({1, 0.5}));
            Engine whole(gguf::GgufFile::open(golden(file)), registry, hardware, options_with({}));
            const std::vector<Token> tokens = some_tokens(61, engine.info().vocabulary);
            const std::vector<float> once = logits_of(engine, tokens, 61);
            for (const float logit : once) ASSERT_TRUE(std::isfinite(logit));
            EXPECT_NE(once, logits_of(whole, tokens, 61));
            double size = 0;
            for (const float logit : once) size = std::max<double>(size, std::abs(logit));
            for (const size_t step : {1, 2, 3, 5, 8, 13, 60}) {
                const std::vector<float> parts = logits_of(engine, tokens, step);
                double worst = 0;
                for (size_t i = 0; i < once.size(); ++i) worst = std::max<double>(worst, std::abs(once[i] - parts[i]));
                EXPECT_LT(worst, (fast ? 2e-3 : 1e-5) * size) << "steps of " << step;
            }
        }
    }
}

TEST(ExpertReduction, NothingIsLeftOutByARatioOfZeroOrEnoughExperts) {
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(plugins_without({}), hardware);
    Engine whole(gguf::GgufFile::open(golden("v3-groups.gguf")), registry, hardware, options_with({}));
    const std::vector<Token> tokens = some_tokens(20, whole.info().vocabulary);
    const std::vector<float> expected = logits_of(whole, tokens, 20);
    for (const ExpertReduction experts : {ExpertReduction{1, 0}, ExpertReduction{4, 1}, ExpertReduction{1000, 1}}) {
        Engine engine(gguf::GgufFile::open(golden("v3-groups.gguf")), registry, hardware, options_with(experts));
        EXPECT_EQ(logits_of(engine, tokens, 20), expected);
    }
}

}  // namespace
}  // namespace tessera::test
