#include "core/text/pretokenizer.hpp"

#include "core/base/error.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>

namespace tessera::text {
namespace {

using testing::HasSubstr;

class Splits : public testing::TestWithParam<std::string> {};

// Held against `tokenizers.pre_tokenizers` with the published expressions.
TEST_P(Splits, EqualThoseOfThePublishedExpressions) {
    const Pretokenizer pretokenizer(find_pretokenizer(GetParam())->steps);
    const boost::json::value recorded = golden("splits.json").at(GetParam());
    ASSERT_EQ(recorded.as_array().size(), golden_texts().size());
    for (size_t i = 0; i < golden_texts().size(); ++i) {
        std::vector<int64_t> lengths;
        for (const std::string_view pretoken : pretokenizer.split(golden_texts()[i]))
            lengths.push_back(static_cast<int64_t>(pretoken.size()));
        EXPECT_EQ(lengths, boost::json::value_to<std::vector<int64_t>>(recorded.at(i)))
            << "text " << i << ": " << boost::json::serialize(boost::json::string(golden_texts()[i]));
    }
}

// Texts that make a careless expression quadratic, which would take hours and meet ctest's limit, or exhaust a stack.
TEST_P(Splits, LongTextsTakeLinearTime) {
    const Pretokenizer pretokenizer(find_pretokenizer(GetParam())->steps);
    constexpr size_t kSize = size_t{1} << 20;
    for (const std::string_view unit :
         {" ", "a", "A", "7", "!", "\n", " \n", "\t ", "a ", "\u4e2d", "\u0301", "\u0915", "\u200d", "'s", "_"}) {
        std::string text;
        while (text.size() < kSize) text += unit;
        text += "x";
        size_t total = 0;
        for (const std::string_view pretoken : pretokenizer.split(text)) total += pretoken.size();
        EXPECT_EQ(total, text.size());
    }
}

std::vector<std::string> known_names() {
    std::vector<std::string> names;
    for (const PretokenizerRow& one : known_pretokenizers()) names.emplace_back(one.names.front());
    return names;
}

INSTANTIATE_TEST_SUITE_P(All, Splits, testing::ValuesIn(known_names()), [](const auto& param) {
    std::string name = param.param;
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
});

TEST(Pretokenizer, EveryRecordedOneIsKnown) {
    EXPECT_EQ(known_pretokenizers().size(), golden("splits.json").as_object().size());
}

TEST(Pretokenizer, NamesMeanOneRow) {
    std::set<std::string_view> seen;
    for (const PretokenizerRow& one : known_pretokenizers())
        for (const std::string_view name : one.names) EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_EQ(find_pretokenizer("llama3"), find_pretokenizer("llama-bpe"));
    EXPECT_EQ(find_pretokenizer("deepseek-r1-qwen"), find_pretokenizer("qwen2"));
    EXPECT_EQ(find_pretokenizer("no-such"), nullptr);
    EXPECT_EQ(find_pretokenizer(""), nullptr);
}

// What both peers read from tokenizer.ggml.pre.
TEST(Pretokenizer, NamesOfOthersAreKnown) {
    for (const std::string_view name : {"a.x-4.0",
                                        "afmoe",
                                        "bailingmoe",
                                        "bailingmoe2",
                                        "bloom",
                                        "chameleon",
                                        "chatglm-bpe",
                                        "codeshell",
                                        "cohere2_moe",
                                        "cohere2moe",
                                        "command-r",
                                        "dbrx",
                                        "deepseek-coder",
                                        "deepseek-llm",
                                        "deepseek-r1-qwen",
                                        "deepseek-v3",
                                        "default",
                                        "exaone",
                                        "exaone-moe",
                                        "exaone4",
                                        "f2llmv2",
                                        "falcon",
                                        "falcon-h1",
                                        "falcon3",
                                        "gemma4",
                                        "gigachat",
                                        "glm4",
                                        "gpt-2",
                                        "gpt-4o",
                                        "gpt3-finnish",
                                        "granite-docling",
                                        "granite-embed-multi-311m",
                                        "granite-embed-multi-97m",
                                        "grok-2",
                                        "hunyuan",
                                        "hunyuan-dense",
                                        "hy_v4",
                                        "jais",
                                        "jais-2",
                                        "jina-de",
                                        "jina-es",
                                        "jina-v1-en",
                                        "jina-v2-code",
                                        "jina-v2-de",
                                        "jina-v2-es",
                                        "jina-v5-nano",
                                        "joyai-llm",
                                        "kanana2",
                                        "kimi-k2",
                                        "kormo",
                                        "laguna",
                                        "lfm2",
                                        "llada-moe",
                                        "llama-bpe",
                                        "llama-v3",
                                        "llama3",
                                        "llama4",
                                        "megrez",
                                        "mellum",
                                        "mellum2",
                                        "midm-2.0",
                                        "minerva-7b",
                                        "minicpm5",
                                        "minimax-m2",
                                        "modern-bert",
                                        "mpt",
                                        "olmo",
                                        "openpangu",
                                        "phi-2",
                                        "pixtral",
                                        "poro-chat",
                                        "qwen2",
                                        "qwen35",
                                        "refact",
                                        "roberta-bpe",
                                        "sarvam-moe",
                                        "seed-coder",
                                        "smaug-bpe",
                                        "smollm",
                                        "solar-open",
                                        "spark2_5",
                                        "stablelm2",
                                        "starcoder",
                                        "superbpe",
                                        "talkie",
                                        "tekken",
                                        "tiny_aya",
                                        "trillion",
                                        "ufakzeka",
                                        "viking",
                                        "youtu"})
        EXPECT_NE(find_pretokenizer(name), nullptr) << name;
}

// docs/models.md has a row of a table for each, with its names in their order.
TEST(Pretokenizer, EachIsDocumented) {
    std::ifstream in(TSR_SOURCE_DIR "/docs/models.md", std::ios::binary);
    const std::string docs{std::istreambuf_iterator<char>(in), {}};
    for (const PretokenizerRow& one : known_pretokenizers()) {
        std::string names;
        for (const std::string_view name : one.names) names += (names.empty() ? "`" : ", `") + std::string(name) + "`";
        EXPECT_THAT(docs, HasSubstr("| " + names + " |"));
    }
}

TEST(Pretokenizer, UnknownNameSaysWhatFitsWhatIsKnownAndHowToOverride) {
    VocabularyData data = small_bpe("no-such");
    try {
        const Tokenizer tokenizer(std::move(data));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        // The vocabulary was learnt with these cuts.
        EXPECT_THAT(error.what(), HasSubstr("'no-such' is not known; the tokens fit those of: deepseek-coder"));
        EXPECT_THAT(error.notice().advice,
                    testing::ElementsAre(Advice{AdviceCode::kOtherMetadata, "tokenizer.ggml.pre=str:NAME"}));
        for (const PretokenizerRow& one : known_pretokenizers())
            EXPECT_THAT(error.what(), HasSubstr(std::string(one.names.front())));
    }
}

TEST(Pretokenizer, MissingNameIsTakenAsOthersDo) {
    const Tokenizer tokenizer(small_bpe(""));
    EXPECT_THAT(tokenizer.notes(), testing::Contains(HasSubstr("tokenizer.ggml.pre is missing: 'default' is taken")));
    EXPECT_EQ(tokenizer.encode("12345", {.add_special = false}),
              Tokenizer(small_bpe("default")).encode("12345", {.add_special = false}));
}

TEST(Pretokenizer, WhatFitsAVocabulary) {
    const std::vector<std::string> tokens = {" the", "123",     ".com", "\n\n", ");\n", " \u0434\u043e\u043c",
                                             "'s",   "\xE4\xB8"};
    EXPECT_THAT(pretokenizers_that_fit(tokens, 100), testing::IsSupersetOf({"llama-bpe", "glm4", "gpt-4o"}));
    EXPECT_THAT(pretokenizers_that_fit(tokens, 100), testing::Not(testing::Contains("qwen2")));
    EXPECT_LE(pretokenizers_that_fit(tokens, 2).size(), 2u);
}

std::vector<std::string_view> split(std::string_view expression, std::string_view text) {
    return Pretokenizer({{std::string(expression)}}).split(text);
}

TEST(SplitExpression, WhatIsNotUnderstoodIsRefused) {
    for (const std::string_view bad :
         {"(b",          "b)",      "[a",    "a{2,1}",    "a{",      "a++",        "a+?",        "*a",
          "a|*",         "\\p{Xx}", "\\p{L", "\\w",       "(?=ab)",  "(?=a+)",     "(?<name>a)", "[z-a]",
          "\\x{110000}", ".",       "\\",    "[a&&b&&c]", "a{2000}", "(?i:[a-z])", "\xFF"})
        EXPECT_THROW(split(bad, "a"), Error) << bad;
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += '(';
    EXPECT_THROW(split(deep, "a"), Error);
    std::ranges::replace(deep, '(', '[');
    EXPECT_THROW(split(deep, "a"), Error);
    EXPECT_THROW(split("(?:a{1000}){1000}", "a"), Error);
}

TEST(SplitExpression, MatchesAsABacktrackingEngineDoes) {
    using testing::ElementsAre;
    EXPECT_THAT(split("a|ab", "abab"), ElementsAre("a", "b", "a", "b"));  // the first alternative, not the longest
    EXPECT_THAT(split("(?:a|ab)(?:c|bcd)", "abcd"), ElementsAre("abcd"));
    EXPECT_THAT(split("a{2,3}", "aaaaaaa"), ElementsAre("aaa", "aaa", "a"));
    EXPECT_THAT(split("x*", "\u00e4bxc"), ElementsAre("\u00e4b", "x", "c"));
    EXPECT_THAT(split("b(?!c)", "bcbd"), ElementsAre("bc", "b", "d"));
    EXPECT_THAT(split("(?<!a)b+$", "abbabb"), ElementsAre("abbab", "b"));
    EXPECT_THAT(split("(?<=a)b", "bab"), ElementsAre("ba", "b"));
    EXPECT_THAT(split("(?i:'s)", "'S'\u017f's"), ElementsAre("'S", "'\u017f", "'s"));
    EXPECT_THAT(split("[\\p{L}&&[^\\p{Lu}a]]+", "abcABC"), ElementsAre("a", "bc", "ABC"));
    EXPECT_THAT(split("[^\\S\\n]+", "a \n\tb"), ElementsAre("a", " ", "\n", "\t", "b"));
    // Nested repetitions, at which a backtracking engine would not come to an end.
    EXPECT_THAT(split("(?:a+)+$", std::string(64, 'a') + "b"), testing::SizeIs(1));
}

TEST(Pretokenizer, EmptyTextHasNoPretokens) {
    EXPECT_TRUE(Pretokenizer({{"a"}}).split("").empty());
}

TEST(Pretokenizer, DigitsInGroupsOfThree) {
    using testing::ElementsAre;
    using Kind = SplitStep::Kind;
    EXPECT_THAT(Pretokenizer({{"\\d+", Kind::kThousands}}).split("x12345y"), ElementsAre("x", "12", "345", "y"));
    EXPECT_THAT(Pretokenizer({{"\\d+", Kind::kCutBeforeThousands}}).split("x12345y"), ElementsAre("x12", "345y"));
    EXPECT_THAT(Pretokenizer({{"\\d+", Kind::kCutBeforeThousands}}).split("x345"), ElementsAre("x", "345"));
}

}  // namespace
}  // namespace tessera::text
