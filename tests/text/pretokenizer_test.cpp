#include "core/text/pretokenizer.hpp"

#include "core/base/error.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::text {
namespace {

using testing::HasSubstr;

class Splits : public testing::TestWithParam<std::string> {};

// Held against `tokenizers.pre_tokenizers` with the published expressions.
TEST_P(Splits, EqualThoseOfThePublishedExpressions) {
    const Pretokenizer pretokenizer(find_pretokenizer(GetParam()).expressions);
    const boost::json::value recorded = golden("splits.json").at(GetParam());
    ASSERT_EQ(recorded.as_array().size(), golden_texts().size());
    for (size_t i = 0; i < golden_texts().size(); ++i) {
        std::vector<int64_t> lengths;
        for (const std::string_view piece : pretokenizer.split(golden_texts()[i]))
            lengths.push_back(static_cast<int64_t>(piece.size()));
        EXPECT_EQ(lengths, boost::json::value_to<std::vector<int64_t>>(recorded.at(i)))
            << "text " << i << ": " << boost::json::serialize(boost::json::string(golden_texts()[i]));
    }
}

// Texts that make a careless expression quadratic, which would take hours and meet ctest's limit, or exhaust a stack.
TEST_P(Splits, LongTextsTakeLinearTime) {
    const Pretokenizer pretokenizer(find_pretokenizer(GetParam()).expressions);
    constexpr size_t kSize = size_t{1} << 20;
    for (const std::string_view unit :
         {" ", "a", "A", "7", "!", "\n", " \n", "\t ", "a ", "\u4e2d", "\u0301", "\u0915", "\u200d", "'s", "_"}) {
        std::string text;
        while (text.size() < kSize) text += unit;
        text += "x";
        size_t total = 0;
        for (const std::string_view piece : pretokenizer.split(text)) total += piece.size();
        EXPECT_EQ(total, text.size());
    }
}

INSTANTIATE_TEST_SUITE_P(All, Splits,
                         testing::Values("deepseek-llm", "deepseek-coder", "deepseek-v3", "kimi-k2", "gpt-2",
                                         "llama-bpe", "qwen2"),
                         [](const auto& param) {
                             std::string name = param.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

TEST(Pretokenizer, EveryKnownOneIsTested) {
    EXPECT_EQ(known_pretokenizers().size(), golden("splits.json").as_object().size());
}

TEST(Pretokenizer, AliasesMeanTheSame) {
    EXPECT_EQ(&find_pretokenizer("llama3"), &find_pretokenizer("llama-bpe"));
    EXPECT_EQ(&find_pretokenizer("deepseek-r1-qwen"), &find_pretokenizer("qwen2"));
}

TEST(Pretokenizer, UnknownNameSaysWhatIsKnownAndHowToOverride) {
    try {
        find_pretokenizer("tekken");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), HasSubstr("'tekken'"));
        EXPECT_THAT(error.notice().advice,
                    testing::ElementsAre(Advice{AdviceCode::kOtherMetadata, "tokenizer.ggml.pre=str:NAME"}));
        for (const PretokenizerPatterns& one : known_pretokenizers())
            EXPECT_THAT(error.what(), HasSubstr(std::string(one.name)));
    }
    EXPECT_THROW(find_pretokenizer(""), Error);
}

TEST(Pretokenizer, BadExpressionIsAnError) {
    EXPECT_THROW(Pretokenizer({"a", "(b"}), Error);
}

TEST(Pretokenizer, CatastrophicExpressionIsAnErrorNotAHang) {
    const Pretokenizer pretokenizer({"(?:a+)+$"});
    EXPECT_THROW(pretokenizer.split(std::string(64, 'a') + "b"), Error);
}

TEST(Pretokenizer, EmptyTextHasNoPieces) {
    EXPECT_TRUE(Pretokenizer({"a"}).split("").empty());
    // An expression that matches nothing at all must still come to an end.
    EXPECT_EQ(Pretokenizer({"x*"}).split("\u00e4bxc").size(), 3u);
}

}  // namespace
}  // namespace tessera::text
