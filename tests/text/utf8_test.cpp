#include "core/text/utf8.hpp"

#include "core/text/byte_level.hpp"
#include "core/text/detokenizer.hpp"
#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tessera::text {
namespace {

using namespace std::string_literals;

TEST(Utf8, StepFollowsTheStandard) {
    const auto step = [](const std::string& text) {
        const Utf8Step s = utf8_step(text);
        return std::pair(s.kind, static_cast<int>(s.length));
    };
    EXPECT_EQ(step("a"), std::pair(Utf8Kind::kValid, 1));
    EXPECT_EQ(step("\u00e4x"), std::pair(Utf8Kind::kValid, 2));
    EXPECT_EQ(step("\U0010ffff"), std::pair(Utf8Kind::kValid, 4));
    EXPECT_EQ(step("\x80"), std::pair(Utf8Kind::kInvalid, 1));
    EXPECT_EQ(step("\xC0\xAF"), std::pair(Utf8Kind::kInvalid, 1));          // overlong
    EXPECT_EQ(step("\xE0\x80\xAF"), std::pair(Utf8Kind::kInvalid, 1));      // overlong
    EXPECT_EQ(step("\xED\xA0\x80"), std::pair(Utf8Kind::kInvalid, 1));      // surrogate
    EXPECT_EQ(step("\xF4\x90\x80\x80"), std::pair(Utf8Kind::kInvalid, 1));  // past U+10FFFF
    EXPECT_EQ(step("\xF5"), std::pair(Utf8Kind::kInvalid, 1));
    EXPECT_EQ(step("\xE2\x82z"), std::pair(Utf8Kind::kInvalid, 2));
    EXPECT_EQ(step("\xE2\x82"), std::pair(Utf8Kind::kIncomplete, 2));
    EXPECT_EQ(step("\xF0"), std::pair(Utf8Kind::kIncomplete, 1));
}

// The example of the Unicode standard, chapter 3.9, "U+FFFD substitution of maximal subparts".
TEST(Utf8, ReplacesMaximalSubparts) {
    EXPECT_EQ(utf8_replace_invalid("\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64"s),
              "a\uFFFD\uFFFD\uFFFDb\uFFFDc\uFFFD\uFFFDd");
    EXPECT_EQ(utf8_replace_invalid("\xE2\x82"s), "\uFFFD");
}

TEST(Utf8, AppendAndDecodeAreInverse) {
    for (uint32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
        if (code >= 0xD800 && code < 0xE000) continue;
        std::string text;
        utf8_append(text, code);
        ASSERT_EQ(utf8_valid_prefix(text), text.size()) << code;
        ASSERT_EQ(utf8_decode(text, text.size()), code);
    }
}

TEST(Utf8, ValidPrefixStopsAtTheFirstBadByteWhereverItStands) {
    for (size_t at = 0; at < 20; ++at) {
        std::string text(20, 'a');
        text[at] = '\xFF';
        EXPECT_EQ(utf8_valid_prefix(text), at);
    }
}

TEST(ByteLevel, CoversEveryByte) {
    std::string all;
    for (int b = 0; b < 256; ++b) all.push_back(static_cast<char>(b));
    const std::string spelling = byte_level_encode(all);
    EXPECT_EQ(utf8_valid_prefix(spelling), spelling.size());
    EXPECT_EQ(byte_level_decode(spelling), all);
    EXPECT_EQ(byte_level_encode(" \n"), "\u0120\u010A");
    EXPECT_FALSE(byte_level_decode("\u2581"));
    EXPECT_FALSE(byte_level_decode("\x80"));
}

TEST(StreamingDetokenizer, HoldsBackPartsOfCharacters) {
    const Tokenizer tokenizer(small_bpe("gpt-2"));
    for (const std::string& text : golden_texts()) {
        StreamingDetokenizer stream(tokenizer);
        std::string all;
        for (const Token token : tokenizer.encode(text)) {
            const std::string part = stream.push(token);
            ASSERT_EQ(utf8_valid_prefix(part), part.size());
            all += part;
        }
        EXPECT_EQ(stream.finish(), "");
        EXPECT_EQ(all, text);
    }
}

TEST(StreamingDetokenizer, OneCharacterByteByByte) {
    const Tokenizer tokenizer(small_bpe("gpt-2"));
    const auto byte = [&](uint8_t b) {
        return tokenizer.find(byte_level_encode(std::string(1, static_cast<char>(b))));
    };
    StreamingDetokenizer stream(tokenizer);
    EXPECT_EQ(stream.push(byte(0xF0)), "");
    EXPECT_EQ(stream.push(byte(0x9F)), "");
    EXPECT_EQ(stream.push(byte(0x9A)), "");
    EXPECT_EQ(stream.push(byte(0x80)), "\U0001F680");
    EXPECT_EQ(stream.push(byte(0xF0)), "");
    EXPECT_EQ(stream.push(byte('a')), "\uFFFDa");
    EXPECT_EQ(stream.push(byte(0xE2)), "");
    EXPECT_EQ(stream.finish(), "\uFFFD");
    EXPECT_EQ(stream.finish(), "");
}

// Whatever the tokens, the stream is valid UTF-8 and equals decode().
TEST(StreamingDetokenizer, AgreesWithDecodeOnRandomTokens) {
    const Tokenizer tokenizer(small_bpe("gpt-2"));
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        std::vector<Token> tokens(40);
        for (Token& token : tokens) token = static_cast<Token>(random() % tokenizer.size());
        StreamingDetokenizer stream(tokenizer);
        std::string all;
        for (const Token token : tokens) all += stream.push(token);
        all += stream.finish();
        EXPECT_EQ(all, tokenizer.decode(tokens));
        EXPECT_EQ(utf8_valid_prefix(all), all.size());
    }
}

}  // namespace
}  // namespace tessera::text
