// Rows of a draft have the bits of single rows, on every model: whatever is accepted of them, answers are the same.
#include "core/session/engine.hpp"
#include "tests/goldens/golden_models.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tessera {
namespace {

// Without those that a vocabulary might not have.
std::vector<Token> some_tokens(size_t count, uint32_t vocabulary, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = static_cast<Token>(random() % vocabulary);
    return tokens;
}

class DraftRows : public testing::TestWithParam<std::string> {};

TEST_P(DraftRows, HaveTheBitsOfSingleOnes) {
    constexpr uint32_t kPrompt = 70, kTokens = 40;
    EngineOptions options;
    options.context = 256;
    options.rows = 128;
    options.sequences = 3;
    options.output_rows = 34;
    test::LoadedModel model(test::golden_model(GetParam()), options, test::plugins_without({}));
    Engine& engine = *model.engine;
    ASSERT_TRUE(engine.rows_have_same_bits());
    const uint32_t most = engine.rows_as_single();
    ASSERT_GE(most, 1u);
    ASSERT_LE(most, 16u);
    PagedCache& cache = engine.cache();
    const std::vector<Token> text = some_tokens(kPrompt + kTokens, engine.info().vocabulary, 3);
    const SequenceId single = cache.create(), drafted = cache.create(), other = cache.create();
    (void)engine.prefill(single, std::span(text).first(kPrompt));
    (void)engine.prefill(drafted, std::span(text).first(kPrompt));
    (void)engine.prefill(other, std::span(text).first(9));
    std::vector<std::vector<float>> wanted;
    for (uint32_t i = 0; i < kTokens; ++i) {
        const BatchEntry entry{single, std::span(text).subspan(kPrompt + i, 1)};
        const auto row = engine.step({&entry, 1}).front();
        wanted.emplace_back(row.begin(), row.end());
    }
    std::mt19937 random(5);
    for (uint32_t at = 0, rows = 1; at < kTokens; rows = rows % most + 1) {
        // Some of the rows are wrong, and are computed again.
        const uint32_t count = std::min(rows, kTokens - at), right = 1 + static_cast<uint32_t>(random() % count);
        std::vector<Token> tokens(text.begin() + kPrompt + at, text.begin() + kPrompt + at + count);
        for (uint32_t i = right; i < count; ++i) tokens[i] = tokens[i] == 1 ? 2 : 1;
        std::vector<BatchEntry> entries = {{drafted, tokens, true, true}};
        const Token one = text[at % 9];
        if (random() % 2) entries.insert(entries.begin(), {other, {&one, 1}});
        const auto logits = engine.step(entries);
        for (uint32_t i = 0; i < right; ++i) {
            const auto row = logits[entries.size() - 1 + i];
            ASSERT_TRUE(std::ranges::equal(row, wanted[at + i])) << "row " << i << " of " << count << " at " << at;
        }
        cache.truncate(drafted, kPrompt + at + right);
        at += right;
    }
    for (const SequenceId sequence : {single, drafted, other}) cache.remove(sequence);
}

INSTANTIATE_TEST_SUITE_P(Goldens, DraftRows, testing::ValuesIn(test::golden_models()), [](const auto& one) {
    std::string name = one.param;
    std::ranges::replace_if(
        name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    return name;
});

}  // namespace
}  // namespace tessera
