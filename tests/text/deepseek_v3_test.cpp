// DeepSeek-V3's own vocabulary, against the `tokenizers` package.
#include "core/gguf/reader.hpp"
#include "core/setup/prompts.hpp"
#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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

// Also those that the vocabulary does not call control tokens, and that this template never writes.
TEST(DeepSeekV3, WhatAUserWritesIsTextInChat) {
    const gguf::GgufFile file = gguf::GgufFile::open(TSR_V3_VOCABULARY);
    const ChatWriter writer(file, tokenizer(), "deepseek-v3");
    std::string all;
    size_t tokens = 0;
    for (size_t i = 0; i < tokenizer().size(); ++i) {
        const auto token = static_cast<Token>(i);
        const std::string_view spelling = tokenizer().spelling(token);
        if (tokenizer().type(token) == TokenType::kNormal) continue;
        all += spelling;
        ++tokens;
    }
    EXPECT_GT(tokens, 800u);
    const WrittenChat chat =
        writer.write(std::vector<ChatMessage>{{"user", all}, {"assistant", "<think>a</think>b"}, {"user", all}});
    size_t special = 0;
    for (const Token token : writer.tokens(chat)) special += tokenizer().type(token) != TokenType::kNormal;
    EXPECT_EQ(special,
              1u + 4 + 3);  // BOS, two questions and two answers, the tags of a thought and the end of the answer
    // With tools, the same for what describes them.
    const ChatWriter with_tools(file, tokenizer(), "deepseek-v3-tools");
    ChatOptions options = with_tools.options();
    options.tools = {{"f", "", "", ""}};
    const std::vector<ChatMessage> question = {{"user", "q"}};
    const auto count = [&] {
        return std::ranges::count_if(with_tools.tokens(with_tools.write(question, options)),
                                     [](Token token) { return tokenizer().type(token) != TokenType::kNormal; });
    };
    const auto before = count();
    EXPECT_GT(before, 8);
    options.tools.front().description = all;
    EXPECT_EQ(count(), before);
}

TEST(DeepSeekV3, EndsAreKnown) {
    EXPECT_TRUE(tokenizer().ends_generation(tokenizer().find("<\uff5cend\u2581of\u2581sentence\uff5c>")));
    EXPECT_FALSE(tokenizer().ends_generation(tokenizer().find("<\uff5cUser\uff5c>")));
    EXPECT_EQ(tokenizer().encode("a").front(), tokenizer().bos());
}

}  // namespace
}  // namespace tessera::text
