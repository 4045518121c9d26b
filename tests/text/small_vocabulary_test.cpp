// Whole tokenizers with small vocabularies, against the `tokenizers` and `sentencepiece` packages.
#include "core/text/pretokenizer.hpp"
#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>

namespace tessera::text {
namespace {

class SmallBpe : public testing::TestWithParam<std::string> {};

TEST_P(SmallBpe, TokensEqualThoseOfTheTokenizersPackage) {
    const Tokenizer tokenizer(small_bpe(GetParam()));
    expect_recorded_tokens(tokenizer, golden("small_bpe_ids.json").at(GetParam()), 200);
    expect_round_trips(tokenizer, find_pretokenizer(GetParam())->nfc);
}

// What is far too long is not read to its end.
void expect_stops(const Tokenizer& tokenizer) {
    constexpr size_t kMost = 50;
    const auto cpu = [&](const std::string& text, size_t most, size_t& tokens) {
        const std::clock_t start = std::clock();  // of this process: others may keep the machine busy
        tokens = tokenizer.encode(text, {.add_special = true, .parse_special = true, .most_tokens = most}).size();
        return static_cast<double>(std::clock() - start);
    };
    for (const char* unit : {"a b", "a, \n", "0 1\t"}) {
        std::string text;
        for (int i = 0; i < 300'000; ++i) text += unit;
        size_t all = 0, some = 0;
        const double whole = cpu(text, SIZE_MAX, all), part = cpu(text, kMost, some);
        EXPECT_GT(all, 1000 * kMost);
        EXPECT_GT(some, kMost);
        EXPECT_LT(some, all / 100) << "of a text of which more need not be known";
        EXPECT_LT(part, whole / 2) << unit;
        cpu(text, all, some);
        EXPECT_EQ(some, all) << "a text that is not too long is read whole";
    }
}

TEST_P(SmallBpe, StopsWhereThereAreTooManyTokens) {
    expect_stops(Tokenizer(small_bpe(GetParam())));
}

TEST(SmallSentencePiece, StopsWhereThereAreTooManyTokens) {
    expect_stops(Tokenizer(small_spm()));
}

INSTANTIATE_TEST_SUITE_P(All, SmallBpe,
                         testing::Values("deepseek-llm", "deepseek-coder", "deepseek-v3", "kimi-k2", "gpt-2",
                                         "llama-bpe", "qwen2", "tekken", "command-r"),
                         [](const auto& param) {
                             std::string name = param.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// A vocabulary of Kimi-K2 without merges ranks a pair by the token it makes. In a vocabulary in the order in which it
// was learnt the two are the same.
TEST(SmallBpe, KimiWithoutMergesRanksByToken) {
    VocabularyData data = small_bpe("kimi-k2");
    data.merges.clear();
    expect_recorded_tokens(Tokenizer(std::move(data)), golden("small_bpe_ids.json").at("kimi-k2"), 200);
}

TEST(SmallSentencePiece, TokensEqualThoseOfTheSentencepiecePackage) {
    const Tokenizer tokenizer(small_spm());
    expect_recorded_tokens(tokenizer, golden("small_spm_ids.json"), 200);
}

TEST(SmallSentencePiece, RunsOfBlanksAreOneWhereTheFileSaysSo) {
    VocabularyData data = small_spm();
    data.remove_extra_blanks = true;
    const Tokenizer tokenizer(data);
    const boost::json::value recorded = golden("small_spm_one_blank_ids.json");
    expect_recorded_tokens(tokenizer, recorded, 200);
    EXPECT_EQ(tokenizer.encode(std::string(100'000, ' ') + "a", {.add_special = false, .most_tokens = 1}),
              tokenizer.encode("a", {.add_special = false}));
    EXPECT_EQ(tokenizer.fewest_tokens(1'000'000), 0u);
}

TEST(SmallGemma, TokensEqualThoseOfTheTokenizersPackage) {
    const Tokenizer tokenizer(small_gemma());
    expect_recorded_tokens(tokenizer, golden("small_gemma_ids.json"), 200);
    for (const std::string& text : golden_texts()) {
        if (text.find("\u2581") != std::string::npos) continue;  // this vocabulary writes blanks so
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special = false})), text);
    }
    // The same vocabulary where the file calls its model BPE.
    VocabularyData data = small_gemma();
    data.model = "gpt2";
    data.pre = "sarvam-moe";
    expect_recorded_tokens(Tokenizer(data), golden("small_gemma_ids.json"), 200);
}

TEST(SmallGemma, HasBosWhateverTheFileSays) {
    VocabularyData data = small_gemma();
    data.tokens.emplace_back("<bos>");
    data.types.push_back(TokenType::kControl);
    data.bos = static_cast<Token>(data.tokens.size() - 1);
    data.add_bos = false;
    const Tokenizer tokenizer(data);
    EXPECT_EQ(tokenizer.encode("a").front(), data.bos);
    EXPECT_FALSE(tokenizer.notes().empty());
}

TEST(SmallSentencePiece, RoundTrips) {
    const Tokenizer tokenizer(small_spm());
    for (const std::string& text : golden_texts()) {
        if (text.find("\u2581") != std::string::npos) continue;  // this vocabulary writes blanks so
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special = false})), text);
    }
}

TEST(SmallSentencePiece, UserDefinedTokenIsTakenWhole) {
    const Tokenizer tokenizer(small_spm());
    const Token tool = tokenizer.find("<tool>");
    ASSERT_NE(tool, kNoToken);
    const std::vector<Token> tokens = tokenizer.encode("a<tool>b", {.add_special = false});
    EXPECT_EQ(std::ranges::count(tokens, tool), 1);
    EXPECT_EQ(tokenizer.bytes(tool), "<tool>");
}

TEST(SmallSentencePiece, PlainPartsHoldNoControlTokens) {
    const Tokenizer tokenizer(small_spm());
    const Token tool = tokenizer.find("<tool>");
    const std::string control(tokenizer.spelling(tokenizer.eos()));
    const std::string text = control + "a" + control + "<tool>" + control;
    const auto counts = [&](const EncodeOptions& options) {
        const std::vector<Token> tokens = tokenizer.encode(text, options);
        return std::pair(std::ranges::count(tokens, tokenizer.eos()), std::ranges::count(tokens, tool));
    };
    const size_t second = control.size() + 1, marker = second + control.size(), third = marker + 6;
    EXPECT_EQ(counts({.add_special = false, .parse_special = true}), std::pair(3l, 1l));
    const std::vector<TextRange> middle = {{second, marker}};
    EXPECT_EQ(counts({.add_special = false, .parse_special = true, .plain = middle}), std::pair(2l, 1l));
    // A token that lies partly in a plain part is none.
    const std::vector<TextRange> edges = {{0, 1}, {third + 1, third + 2}};
    EXPECT_EQ(counts({.add_special = false, .parse_special = true, .plain = edges}), std::pair(1l, 1l));
    const std::vector<TextRange> all = {{0, second}, {second, text.size()}};
    EXPECT_EQ(counts({.add_special = false, .parse_special = true, .plain = all}), std::pair(0l, 1l));
    const std::vector<Token> markers = {tool};
    EXPECT_EQ(counts({.add_special = false, .parse_special = true, .plain = all, .not_in_plain = markers}),
              std::pair(0l, 0l));
}

}  // namespace
}  // namespace tessera::text
