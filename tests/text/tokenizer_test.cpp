// What a tokenizer does with vocabularies and texts that are wrong, and with special tokens.
#include "core/text/tokenizer.hpp"

#include "core/base/error.hpp"
#include "core/text/byte_level.hpp"
#include "core/text/detokenizer.hpp"
#include "core/text/utf8.hpp"
#include "tests/text/goldens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>

namespace tessera::text {
namespace {

using namespace std::string_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// Four letters, a blank, and what a test adds.
VocabularyData tiny() {
    VocabularyData data;
    data.model = "gpt2";
    data.pre = "gpt-2";
    data.tokens = {"a", "b", "c", "\u0120", "ab", "abc"};
    data.merges = {"a b", "ab c"};
    return data;
}

void expect_error(const VocabularyData& data, tsr_code code, const std::string& part) {
    try {
        Tokenizer tokenizer(data);
        ADD_FAILURE() << "no error, expected one about " << part;
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), code) << error.what();
        EXPECT_THAT(error.what(), HasSubstr(part));
    }
}

TEST(Tokenizer, MergesByRank) {
    const Tokenizer tokenizer(tiny());
    EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(5));
    EXPECT_THAT(tokenizer.encode("abab ca"), ElementsAre(4, 4, 3, 2, 0));
    EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST(Tokenizer, TextThatBeginsWithBosGetsNoSecondOne) {
    VocabularyData data = tiny();
    data.tokens.emplace_back("<s>");
    data.types.assign(data.tokens.size(), TokenType::kNormal);
    data.types.back() = TokenType::kControl;
    data.bos = 6;
    data.add_bos = true;
    const Tokenizer tokenizer(data);
    const auto parsed = [&](std::string_view text) { return tokenizer.encode(text, {.parse_special = true}); };
    EXPECT_THAT(parsed("ab"), ElementsAre(6, 4));
    EXPECT_THAT(parsed("<s>ab"), ElementsAre(6, 4));
    EXPECT_THAT(parsed("<s>"), ElementsAre(6));
    EXPECT_THAT(parsed(""), ElementsAre(6));
    EXPECT_THAT(parsed("<s><s>a"), ElementsAre(6, 6, 0)) << "what the text says itself stays";
    EXPECT_THAT(parsed("a<s>"), ElementsAre(6, 0, 6));
    EXPECT_THAT(tokenizer.encode("<s>a", {.add_special = false, .parse_special = true}), ElementsAre(6, 0));
}

// What no text needs.
TEST(Tokenizer, UnneededNonsenseIsNoted) {
    const auto notes_of = [](const std::function<void(VocabularyData&)>& change) {
        VocabularyData data = tiny();
        data.eos = 2;
        change(data);
        const Tokenizer tokenizer(data);
        EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(5));
        std::vector<std::string> notes = tokenizer.notes();
        // Most bytes have no token here.
        std::erase_if(notes, [](const std::string& note) { return note.find("left out of texts") != note.npos; });
        return notes;
    };
    EXPECT_THAT(notes_of([](auto&) {}), ElementsAre());
    EXPECT_THAT(notes_of([](auto& d) { d.pad = 6; }), ElementsAre(HasSubstr("padding_token_id is 6")));
    EXPECT_THAT(notes_of([](auto& d) { d.eot = -9; }), ElementsAre(HasSubstr("eot_token_id is -9")));
    EXPECT_THAT(notes_of([](auto& d) { d.unk = std::numeric_limits<Token>::max(); }),
                ElementsAre(HasSubstr("unknown_token_id")));
    EXPECT_THAT(notes_of([](auto& d) {
                    d.add_bos = false;
                    d.bos = 77;
                }),
                ElementsAre(HasSubstr("bos_token_id is 77")));
    EXPECT_THAT(notes_of([](auto& d) { d.eos = kNoToken; }), ElementsAre(HasSubstr("no end token")));
    EXPECT_THAT(notes_of([](auto& d) { d.types.assign(6, static_cast<TokenType>(0)); }),
                ElementsAre(testing::AllOf(HasSubstr("token_type is 0"), HasSubstr("5 more"))));
    EXPECT_THAT(notes_of([](auto& d) { d.merges.push_back("a x"); }), ElementsAre(HasSubstr("no token 'x'")));
    EXPECT_THAT(notes_of([](auto& d) {
                    d.merges.insert(d.merges.end(), {"b c", "x y"});
                }),
                ElementsAre(testing::AllOf(HasSubstr("no token 'bc'"), HasSubstr("1 more of 4"))));
}

TEST(Tokenizer, BadVocabulariesAreErrors) {
    const auto with = [](const std::function<void(VocabularyData&)>& change) {
        VocabularyData data = tiny();
        change(data);
        return data;
    };
    expect_error(with([](auto& d) { d.model = "unigram"; }), TSR_UNSUPPORTED, "tokenizer.ggml.model");
    for (const auto& [name, kind] :
         {std::pair{"t5", "unigrams"}, {"bert", "WordPiece"}, {"rwkv", "RWKV"}, {"plamo2", "PLaMo"}})
        expect_error(with([&](auto& d) { d.model = name; }), TSR_UNSUPPORTED, kind);
    expect_error(with([](auto& d) { d.pre = "nobody"; }), TSR_UNSUPPORTED, "deepseek-v3");
    expect_error(with([](auto& d) { d.tokens.clear(); }), TSR_CORRUPT_DATA, "empty");
    expect_error(with([](auto& d) { d.types.resize(2, TokenType::kNormal); }), TSR_CORRUPT_DATA, "token_type");
    expect_error(with([](auto& d) { d.types.assign(6, static_cast<TokenType>(9)); }), TSR_CORRUPT_DATA, "token_type");
    expect_error(with([](auto& d) { d.types.assign(6, TokenType::kByte); }), TSR_CORRUPT_DATA, "byte");
    expect_error(with([](auto& d) { d.bos = 6; }), TSR_CORRUPT_DATA, "tokenizer.ggml.bos_token_id: expected");
    expect_error(with([](auto& d) { d.eos = -7; }), TSR_CORRUPT_DATA, "eos_token_id");
    expect_error(with([](auto& d) { d.add_bos = true; }), TSR_CORRUPT_DATA, "add_bos_token");
    expect_error(with([](auto& d) { d.add_eos = true; }), TSR_CORRUPT_DATA, "add_eos_token");
    expect_error(with([](auto& d) { d.merges.clear(); }), TSR_CORRUPT_DATA, "merges");
    for (const char* merge : {"", " ", "ab", "a ", " b", "a b c"})
        expect_error(with([&](auto& d) { d.merges.push_back(merge); }), TSR_CORRUPT_DATA, "entry 2");
    expect_error(with([](auto& d) { d.model = "llama"; }), TSR_CORRUPT_DATA, "scores");
    expect_error(with([](auto& d) {
                     d.model = "llama";
                     d.scores.assign(6, std::numeric_limits<float>::quiet_NaN());
                 }),
                 TSR_CORRUPT_DATA, "scores");
}

TEST(Tokenizer, TokensOutsideTheVocabularyAreErrors) {
    const Tokenizer tokenizer(tiny());
    StreamingDetokenizer stream(tokenizer);
    for (const Token token : {kNoToken, 6, std::numeric_limits<Token>::min(), std::numeric_limits<Token>::max()}) {
        EXPECT_THROW(tokenizer.bytes(token), Error);
        EXPECT_THROW(tokenizer.spelling(token), Error);
        EXPECT_THROW(tokenizer.type(token), Error);
        EXPECT_THROW(tokenizer.decode(std::vector<Token>{0, token}), Error);
        EXPECT_THROW(stream.push(token), Error);
        EXPECT_FALSE(tokenizer.ends_generation(token));
    }
    EXPECT_EQ(stream.push(0), "a");
}

TEST(Tokenizer, WhatCannotBeSpeltIsUnknownOrLeftOut) {
    VocabularyData data = tiny();
    EXPECT_EQ(Tokenizer(data).encode("ax"), Tokenizer(data).encode("a"));
    data.tokens.push_back("<unk>");
    data.unk = 6;
    EXPECT_THAT(Tokenizer(data).encode("axb"), ElementsAre(0, 6, 1));
    // Byte tokens of a file come before the unknown token.
    data.tokens.push_back("<0x78>");
    data.types.assign(8, TokenType::kNormal);
    data.types[6] = TokenType::kUnknown;
    data.types[7] = TokenType::kByte;
    EXPECT_THAT(Tokenizer(data).encode("axb"), ElementsAre(0, 7, 1));
    EXPECT_EQ(Tokenizer(data).decode(std::vector<Token>{0, 7}), "ax");
}

TEST(Tokenizer, InvalidUtf8IsSpeltInBytesWhereThereAreSome) {
    const Tokenizer tokenizer(small_bpe("gpt-2"));
    const std::string text = "a\xFF\xC0z\xE2\x82 \xED\xA0\x80"s;
    const std::vector<Token> tokens = tokenizer.encode(text);
    std::string bytes;
    for (const Token token : tokens) bytes += tokenizer.bytes(token);
    EXPECT_EQ(bytes, text);
    EXPECT_EQ(tokenizer.decode(tokens), utf8_replace_invalid(text));
}

// The vocabularies of DeepSeek lack the thirteen bytes that UTF-8 never uses.
TEST(Tokenizer, InvalidUtf8BecomesTheReplacementCharacterElse) {
    VocabularyData data = small_bpe("deepseek-llm");
    for (std::string& token : data.tokens)
        if (token == byte_level_encode("\xFF")) token = "[nothing]";
    const Tokenizer tokenizer(data);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xFFz")), "a\uFFFDz");
    EXPECT_EQ(tokenizer.encode("a\xFFz"), tokenizer.encode("a\xFFz"s));
}

TEST(Tokenizer, RandomBytesNeverFail) {
    const Tokenizer bpe(small_bpe("deepseek-v3"));
    const Tokenizer spm(small_spm());
    std::mt19937 random(3);
    for (int round = 0; round < 300; ++round) {
        std::string text(random() % 80, '\0');
        for (char& c : text) c = static_cast<char>(random() % 3 ? random() : "\xE4\xB8\xAD\xF0 \n'"[random() % 8]);
        std::string bytes;
        for (const Token token : bpe.encode(text)) bytes += bpe.bytes(token);
        EXPECT_EQ(bytes, text);
        EXPECT_EQ(spm.decode(spm.encode(text, {.add_special = false})), utf8_replace_invalid(text));
    }
}

VocabularyData with_specials() {
    VocabularyData data = small_bpe("deepseek-v3");
    const auto add = [&](const char* text, TokenType type) {
        data.tokens.push_back(text);
        data.types.push_back(type);
        return static_cast<Token>(data.tokens.size() - 1);
    };
    data.types.assign(data.tokens.size(), TokenType::kNormal);
    data.bos = add("<s>", TokenType::kControl);
    data.eos = add("</s>", TokenType::kControl);
    add("<|im_end|>", TokenType::kControl);
    add("<|im_end|>!", TokenType::kControl);
    add("\u00fc", TokenType::kUserDefined);
    add("\u00fcb", TokenType::kUserDefined);
    return data;
}

TEST(Tokenizer, SpecialTokens) {
    const Tokenizer tokenizer(with_specials());
    const Token end = tokenizer.find("<|im_end|>");
    const Token longer = tokenizer.find("<|im_end|>!");
    const EncodeOptions parse{.add_special = false, .parse_special = true};
    const EncodeOptions plain{.add_special = false};
    EXPECT_THAT(tokenizer.encode("<|im_end|><|im_end|>", parse), ElementsAre(end, end));
    EXPECT_THAT(tokenizer.encode("<|im_end|>!", parse), ElementsAre(longer));
    EXPECT_THAT(tokenizer.encode("<|im_end|><|im_end", parse), testing::SizeIs(testing::Gt(2u)));
    EXPECT_THAT(tokenizer.encode("<|im_end|>", plain), testing::Not(testing::Contains(end)));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("<|im_end|>", plain)), "<|im_end|>");
    // User-defined ones are taken in any text, the longest first.
    const Token user = tokenizer.find("\u00fcb");
    EXPECT_THAT(tokenizer.encode("\u00fcb\u00fc", plain), ElementsAre(user, user - 1));
    EXPECT_EQ(tokenizer.decode(std::vector<Token>{user, user - 1}), "\u00fcb\u00fc");
    // Control tokens are shown when asked for.
    EXPECT_EQ(tokenizer.decode(std::vector<Token>{end, user}), "\u00fcb");
    EXPECT_EQ(tokenizer.decode(std::vector<Token>{end, user}, {.show_control = true}), "<|im_end|>\u00fcb");
    EXPECT_EQ(StreamingDetokenizer(tokenizer).push(end), "");
    EXPECT_EQ(StreamingDetokenizer(tokenizer, true).push(end), "<|im_end|>");
    EXPECT_TRUE(tokenizer.ends_generation(end));
    EXPECT_TRUE(tokenizer.ends_generation(tokenizer.eos()));
    EXPECT_FALSE(tokenizer.ends_generation(tokenizer.bos()));
}

// As Phi-3's tokenizer.json has it.
TEST(Tokenizer, BlanksBehindSpecialTokensGoWithThem) {
    VocabularyData data = with_specials();
    const EncodeOptions parse{.add_special = false, .parse_special = true};
    const std::string text = "<|im_end|> \n\tb <|im_end|>\n";
    EXPECT_THAT(Tokenizer(data).encode(text, parse), testing::SizeIs(testing::Gt(4u)));
    data.strips_after_special = true;
    const Tokenizer tokenizer(data);
    const Token end = tokenizer.find("<|im_end|>");
    std::vector<Token> expected = tokenizer.encode("b ", {.add_special = false});
    expected.insert(expected.begin(), end);
    expected.push_back(end);
    EXPECT_EQ(tokenizer.encode(text, parse), expected);
    EXPECT_EQ(tokenizer.fewest_tokens(1'000'000), 0u);
}

// Falcon's vocabulary lacks 14 control characters.
TEST(Tokenizer, BytesWithoutATokenAreLeftOut) {
    VocabularyData data = with_specials();
    const Tokenizer whole(data);
    ASSERT_THAT(whole.notes(), testing::Not(testing::Contains(HasSubstr("left out of texts"))));
    const Token control = whole.encode("\x02", {.add_special = false}).front();
    data.tokens[static_cast<size_t>(control)] = "lacking";
    data.unk = kNoToken;
    const Tokenizer tokenizer(data);
    EXPECT_THAT(tokenizer.notes(), testing::Contains(AllOf(HasSubstr("0x02"), HasSubstr("left out of texts"))));
    EXPECT_EQ(tokenizer.encode("Hi\x02 you"), tokenizer.encode("Hi you"));
    EXPECT_THAT(tokenizer.encode("\x02", {.add_special = false}), testing::IsEmpty());
    EXPECT_EQ(tokenizer.fewest_tokens(1'000'000), 0u);
    data.unk = data.eos;
    const Tokenizer with_unknown(data);
    EXPECT_THAT(with_unknown.encode("\x02", {.add_special = false}), testing::ElementsAre(data.eos));
}

TEST(Tokenizer, BeginAndEnd) {
    VocabularyData data = with_specials();
    const std::vector<Token> inner = Tokenizer(data).encode("Hi", {.add_special = false});
    const auto framed = [&](bool bos, bool eos) {
        std::vector<Token> all = inner;
        if (bos) all.insert(all.begin(), data.bos);
        if (eos) all.push_back(data.eos);
        return all;
    };
    EXPECT_EQ(Tokenizer(data).encode("Hi"), framed(true, false));  // what deepseek-v3 does unless told
    data.add_eos = true;
    data.add_bos = false;
    EXPECT_EQ(Tokenizer(data).encode("Hi"), framed(false, true));
    EXPECT_TRUE(Tokenizer(data).adds_eos());
    data.add_bos.reset();
    data.pre = "qwen2";
    EXPECT_FALSE(Tokenizer(data).adds_bos());
}

TEST(SentencePiece, SpacePrefix) {
    VocabularyData data = small_spm();
    const Tokenizer with(data);
    data.add_space_prefix = false;
    const Tokenizer without(data);
    EXPECT_TRUE(with.adds_space_prefix());
    EXPECT_EQ(with.encode("Hello"), without.encode(" Hello"));
    EXPECT_NE(with.encode("Hello"), without.encode("Hello"));
    EXPECT_EQ(with.decode(with.encode("  Hello")), "  Hello");
    EXPECT_EQ(without.decode(without.encode("  Hello")), "  Hello");
    EXPECT_EQ(with.decode(with.encode("Hello"), {.drop_prefix_space = false}), " Hello");
    EXPECT_TRUE(with.encode("", {.add_special = false}).empty());
}

TEST(SentencePiece, WithoutBytesUnknownOrAnError) {
    VocabularyData data;
    data.model = "llama";
    data.tokens = {"<unk>", "\u2581", "a", "b", "ab"};
    data.scores = {0, -1, -2, -3, -4};
    data.types = {TokenType::kUnknown, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal};
    EXPECT_THROW(Tokenizer(data).encode("x"), Error);
    data.unk = 0;
    EXPECT_THAT(Tokenizer(data).encode("abx"), ElementsAre(1, 4, 0));
    // A token of type "unused" is put together and taken apart again.
    data.types[4] = TokenType::kUnused;
    EXPECT_THAT(Tokenizer(data).encode("ab"), ElementsAre(1, 2, 3));
}

// One word of half a megabyte: no step may look at all of it for each of its bytes. That would take an hour a text,
// where ctest's limit ends it.
TEST(Tokenizer, LongWordsTakeAboutLinearTime) {
    const Tokenizer bpe(small_bpe("deepseek-v3"));
    const Tokenizer spm(small_spm());
    for (const std::string_view unit : {"a", "the", "\u4e2d", "=", " ", "\xFF"}) {
        std::string text;
        while (text.size() < (size_t{1} << 19)) text += unit;
        for (const Tokenizer* tokenizer : {&bpe, &spm}) {
            const std::vector<Token> tokens = tokenizer->encode(text, {.add_special = false});
            EXPECT_FALSE(tokens.empty());
        }
    }
}

}  // namespace
}  // namespace tessera::text
