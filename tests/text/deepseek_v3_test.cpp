// DeepSeek-V3's own vocabulary, against the `tokenizers` package.
#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace tessera::text {
namespace {

const Tokenizer& tokenizer() {
    static const Tokenizer one(read_vocabulary(TSR_V3_VOCABULARY));
    return one;
}

TEST(DeepSeekV3, TokensEqualThoseOfTheTokenizersPackage) {
    expect_recorded_tokens(tokenizer(), golden("deepseek_v3_ids.json"), 200);
    expect_round_trips(tokenizer());
}

TEST(DeepSeekV3, ControlTokensOnlyWhenAsked) {
    const std::string text = "<\uff5cUser\uff5c>Hi<\uff5cAssistant\uff5c>";
    const std::vector<Token> parsed = tokenizer().encode(text, {.add_special = false, .parse_special = true});
    EXPECT_EQ(parsed.size(), 3u);
    EXPECT_EQ(tokenizer().spelling(parsed[0]), "<\uff5cUser\uff5c>");
    EXPECT_EQ(tokenizer().decode(parsed), "Hi");
    EXPECT_EQ(tokenizer().decode(parsed, {.show_control = true}), text);
    const std::vector<Token> plain = tokenizer().encode(text, {.add_special = false});
    EXPECT_GT(plain.size(), 6u);
    EXPECT_EQ(tokenizer().decode(plain), text);
}

TEST(DeepSeekV3, EndsAreKnown) {
    EXPECT_TRUE(tokenizer().ends_generation(tokenizer().find("<\uff5cend\u2581of\u2581sentence\uff5c>")));
    EXPECT_FALSE(tokenizer().ends_generation(tokenizer().find("<\uff5cUser\uff5c>")));
    EXPECT_EQ(tokenizer().encode("a").front(), tokenizer().bos());
}

}  // namespace
}  // namespace tessera::text
