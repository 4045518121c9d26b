// Normalization Form C against Python's unicodedata (testing/goldens/record_tokenizer_goldens/record_nfc.py), and where
// it is used.
#include "core/text/nfc.hpp"

#include "core/text/utf8.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::text {
namespace {

namespace json = boost::json;

std::string nfc(std::string_view text) {
    std::string buffer;
    return std::string(to_nfc(text, buffer));
}

TEST(Nfc, EqualsPythons) {
    size_t changed = 0;
    const json::value pairs = golden("nfc.json");
    for (const json::value& pair : pairs.as_array()) {
        const auto text = json::value_to<std::string>(pair.at(0)), form = json::value_to<std::string>(pair.at(1));
        EXPECT_EQ(nfc(text), form) << json::serialize(pair.at(0));
        EXPECT_EQ(nfc(form), form);
        EXPECT_EQ(nfc("x\xe6\xbc\xa2" + text + "\n"), nfc("x\xe6\xbc\xa2" + text) + "\n");
        changed += text != form;
    }
    EXPECT_GT(changed, 600u);
}

TEST(Nfc, WhatIsInFormIsNotCopied) {
    std::string buffer;
    for (const char* text : {"", "plain ASCII", "\u00e9\u00fc \u6f22\u5b57 \u304c \ud55c\uae00 \u0416"})
        EXPECT_EQ(to_nfc(text, buffer).data(), text);
}

// In the square of their number this would take hours.
TEST(Nfc, LongRunsOfMarksAreSorted) {
    constexpr size_t kPairs = 500'000;
    std::string text = "a", sorted = "a", buffer;
    for (size_t i = 0; i < kPairs; ++i) text += "\u0308\u0323";
    for (size_t i = 0; i < kPairs; ++i) sorted += "\u0323";
    for (size_t i = 0; i < kPairs; ++i) sorted += "\u0308";
    EXPECT_EQ(to_nfc(text, buffer), nfc(sorted));
    EXPECT_EQ(nfc(text).substr(0, 5), "\u1ea1\u0323") << "the first one below joins the letter";
    std::string syllables;
    for (size_t i = 0; i < kPairs; ++i) syllables += "\u1112\u1161\u11ab";
    EXPECT_EQ(nfc(syllables).size(), kPairs * 3);
}

TEST(Nfc, TokenizersOfQwenHaveIt) {
    const Tokenizer with(small_bpe("qwen2")), without(small_bpe("llama-bpe"));
    EXPECT_EQ(Tokenizer(small_bpe("deepseek-r1-qwen")).encode("e\u0301"), with.encode("\u00e9"));
    EXPECT_EQ(with.encode("cafe\u0301 \u1112\u1161\u11ab \u212b"), with.encode("caf\u00e9 \ud55c \u00c5"));
    EXPECT_EQ(with.decode(with.encode("e\u0301")), "\u00e9");
    EXPECT_EQ(without.decode(without.encode("e\u0301")), "e\u0301");
}

// Bytes that are no UTF-8 stay as they are, and nothing joins across them.
TEST(Nfc, OtherBytesPassUnharmed) {
    const Tokenizer tokenizer(small_bpe("qwen2"));
    const auto bytes_of = [&](std::string_view text) {
        std::string bytes;
        for (const Token token : tokenizer.encode(text)) bytes += tokenizer.bytes(token);
        return bytes;
    };
    for (const char* text : {"\xff", "e\xff\u0301", "\u0301\xc3", "a\xed\xa0\x80z", "\xf0\x9f\x98", "\xcc\x81\x81"})
        EXPECT_EQ(bytes_of(text), text);
    EXPECT_EQ(bytes_of("e\u0301\xff"
                       "e\u0301\xff"),
              "\u00e9\xff\u00e9\xff");
}

// Control tokens are looked for in the text as it was written, and keep what is around them apart.
TEST(Nfc, ControlTokensAreFound) {
    VocabularyData data = small_bpe("qwen2");
    data.types.assign(data.tokens.size(), TokenType::kNormal);
    const auto mark = static_cast<Token>(data.tokens.size());
    data.tokens.emplace_back("<|mark|>");
    data.types.push_back(TokenType::kControl);
    const Tokenizer tokenizer(data);
    const std::vector<Token> tokens =
        tokenizer.encode("e\u0301<|mark|>\u0301e<|mark|>e\u0301", {.parse_special = true});
    EXPECT_EQ(std::ranges::count(tokens, mark), 2);
    EXPECT_EQ(tokenizer.decode(tokens), "\u00e9\u0301e\u00e9");
    // ">" would join this stroke.
    EXPECT_EQ(std::ranges::count(tokenizer.encode("<|mark|>\u0338", {.parse_special = true}), mark), 1);
    // Parts that are plain are counted in bytes of the text as it was written.
    const std::string text = "e\u0301e\u0301<|mark|>e\u0301<|mark|>";
    const TextRange plain{text.find('<'), text.find('<') + 8};
    const EncodeOptions options{.parse_special = true, .plain = {&plain, 1}};
    EXPECT_EQ(std::ranges::count(tokenizer.encode(text, options), mark), 1);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, options)), "\u00e9\u00e9<|mark|>\u00e9");
}

}  // namespace
}  // namespace tessera::text
