#include "core/text/vocabulary_from_gguf.hpp"

#include "core/base/error.hpp"
#include "core/text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::text {
namespace {

gguf::StringArray strings(std::initializer_list<std::string_view> list) {
    gguf::StringArray array;
    for (const std::string_view one : list) array.push_back(one);
    return array;
}

gguf::Metadata example() {
    gguf::Metadata metadata("example.gguf");
    metadata.add("tokenizer.ggml.model", std::string("gpt2"));
    metadata.add("tokenizer.ggml.pre", std::string("deepseek-v3"));
    metadata.add("tokenizer.ggml.tokens", gguf::Array(strings({"<s>", "</s>", "a", "b", "ab"})));
    metadata.add("tokenizer.ggml.token_type", gguf::Array(std::vector<int32_t>{3, 3, 1, 1, 1}));
    metadata.add("tokenizer.ggml.merges", gguf::Array(strings({"a b"})));
    metadata.add("tokenizer.ggml.bos_token_id", uint32_t{0});
    metadata.add("tokenizer.ggml.eos_token_id", uint32_t{1});
    metadata.add("tokenizer.ggml.padding_token_id", uint32_t{0xFFFFFFFF});
    metadata.add("tokenizer.ggml.add_bos_token", true);
    return metadata;
}

// But that the examples' tokens spell few bytes.
std::vector<std::string> notes_of(const Tokenizer& tokenizer) {
    std::vector<std::string> notes = tokenizer.notes();
    std::erase_if(notes, [](const std::string& note) { return note.find("left out of texts") != note.npos; });
    return notes;
}

TEST(VocabularyFromGguf, ReadsEveryKey) {
    const VocabularyData data = vocabulary_from_gguf(example());
    EXPECT_EQ(data.model, "gpt2");
    EXPECT_EQ(data.pre, "deepseek-v3");
    EXPECT_THAT(data.tokens, testing::ElementsAre("<s>", "</s>", "a", "b", "ab"));
    EXPECT_EQ(data.types[1], TokenType::kControl);
    EXPECT_EQ(data.types[2], TokenType::kNormal);
    EXPECT_THAT(data.merges, testing::ElementsAre("a b"));
    EXPECT_EQ(data.bos, 0);
    EXPECT_EQ(data.eos, 1);
    EXPECT_EQ(data.pad, kNoToken);
    EXPECT_EQ(data.unk, kNoToken);
    EXPECT_EQ(data.add_bos, true);
    EXPECT_FALSE(data.add_eos.has_value());
    EXPECT_THAT(Tokenizer(data).encode("ab"), testing::ElementsAre(0, 4));
}

TEST(VocabularyFromGguf, MissingOrWrongKeysAreErrors) {
    gguf::Metadata empty("empty.gguf");
    EXPECT_THROW(vocabulary_from_gguf(empty), Error);
    gguf::Metadata wrong = example();
    wrong.set("tokenizer.ggml.tokens", std::string("a"));
    EXPECT_THROW(vocabulary_from_gguf(wrong), Error);
    gguf::Metadata negative = example();
    negative.set("tokenizer.ggml.eos_token_id", int32_t{-2});
    EXPECT_THROW(vocabulary_from_gguf(negative), Error);
    gguf::Metadata far = example();
    far.set("tokenizer.ggml.eos_token_id", uint32_t{5});
    EXPECT_THROW(Tokenizer(vocabulary_from_gguf(far)), Error);
}

TEST(VocabularyFromGguf, UnneededIdsMayBeNonsense) {
    gguf::Metadata metadata = example();
    metadata.set("tokenizer.ggml.padding_token_id", uint32_t{5});
    metadata.set("tokenizer.ggml.unknown_token_id", uint64_t{1} << 40);
    const Tokenizer tokenizer(vocabulary_from_gguf(metadata));
    EXPECT_EQ(tokenizer.pad(), kNoToken);
    EXPECT_THAT(notes_of(tokenizer),
                testing::UnorderedElementsAre(testing::HasSubstr("padding_token_id is 5"),
                                              testing::HasSubstr("unknown_token_id is 1099511627776")));
}

// As SentencePiece numbers them.
TEST(VocabularyFromGguf, SentencePieceHasItsUsualIds) {
    gguf::Metadata metadata("example.gguf");
    metadata.add("tokenizer.ggml.model", std::string("llama"));
    metadata.add("tokenizer.ggml.tokens", gguf::Array(strings({"<unk>", "<s>", "</s>", "\u2581a"})));
    metadata.add("tokenizer.ggml.scores", gguf::Array(std::vector<float>{0, 0, 0, -1}));
    metadata.add("tokenizer.ggml.token_type", gguf::Array(std::vector<int32_t>{2, 3, 3, 1}));
    const Tokenizer tokenizer(vocabulary_from_gguf(metadata));
    EXPECT_THAT(tokenizer.encode("a"), testing::ElementsAre(1, 3));
    EXPECT_EQ(tokenizer.eos(), 2);
    EXPECT_EQ(tokenizer.notes().size(), 3u);
    metadata.add("tokenizer.ggml.bos_token_id", int32_t{-1});
    EXPECT_THAT(Tokenizer(vocabulary_from_gguf(metadata)).encode("a"), testing::ElementsAre(3));
}

// Names that end answers whatever the file's own keys say; where a text may hold them, special tokens alone.
TEST(VocabularyFromGguf, EndsAreKnownByTheirNames) {
    gguf::Metadata metadata = example();
    metadata.set("tokenizer.ggml.tokens",
                 gguf::Array(strings({"<s>", "<|eos|>", "a", "b", "ab", "<|end|>", "<end_of_turn>", "<|file_sep|>",
                                      "[PAD]", "</s>", "<EOT>", "<pad>"})));
    metadata.set("tokenizer.ggml.token_type", gguf::Array(std::vector<int32_t>{3, 3, 1, 1, 1, 3, 3, 4, 3, 1, 3, 3}));
    EXPECT_THAT(Tokenizer(vocabulary_from_gguf(metadata)).generation_ends(), testing::ElementsAre(1, 5, 6, 7, 8, 10));
    metadata.set("tokenizer.ggml.fim_pad_token_id", uint32_t{11});
    metadata.set("tokenizer.ggml.fim_rep_token_id", uint32_t{99});
    const Tokenizer tokenizer(vocabulary_from_gguf(metadata));
    EXPECT_TRUE(tokenizer.ends_generation(11));
    EXPECT_THAT(notes_of(tokenizer), testing::ElementsAre(testing::HasSubstr("fim_*_token_id is 99")));
}

// Tokens that known models end with, of whatever type a file has them.
TEST(VocabularyFromGguf, KnownEndsAreControlTokens) {
    gguf::Metadata metadata = example();
    metadata.set("tokenizer.ggml.tokens",
                 gguf::Array(strings({"<s>", "x", "a", "b", "ab", "<|im_end|>", "[EOT]", "</s>", "<|fim_prefix|>",
                                      "<|fim_middle|>", "<turn|>", "[e~["})));
    metadata.set("tokenizer.ggml.token_type", gguf::Array(std::vector<int32_t>{3, 1, 1, 1, 1, 1, 4, 1, 1, 4, 3, 3}));
    const Tokenizer tokenizer(vocabulary_from_gguf(metadata));
    EXPECT_THAT(tokenizer.generation_ends(), testing::ElementsAre(1, 5, 6, 10, 11));
    EXPECT_EQ(tokenizer.type(5), TokenType::kControl);
    EXPECT_EQ(tokenizer.type(6), TokenType::kControl);
    EXPECT_EQ(tokenizer.type(7), TokenType::kNormal);
    EXPECT_EQ(tokenizer.type(8), TokenType::kControl);
    EXPECT_EQ(tokenizer.type(9), TokenType::kUserDefined);
    EXPECT_THAT(notes_of(tokenizer),
                testing::ElementsAre(testing::HasSubstr("has token 5, '<|im_end|>', as part of "
                                                        "words: taken as a control token, as are 1 "
                                                        "more")));
    EXPECT_THAT(tokenizer.encode("<|im_end|>", {.add_special = false, .parse_special = true}), testing::ElementsAre(5));
}

// Where an answer has several messages, the end of one does not end it.
TEST(VocabularyFromGguf, EndsOfMessagesAreNotEndsOfAnswers) {
    const auto ends = [](std::initializer_list<std::string_view> more) {
        gguf::Metadata metadata = example();
        gguf::StringArray tokens = strings({"<s>", "a", "b", "ab"});
        std::vector<int32_t> types(tokens.size(), 1);
        for (const std::string_view one : more) tokens.push_back(one);
        types.resize(tokens.size(), 3);
        metadata.set("tokenizer.ggml.tokens", gguf::Array(tokens));
        metadata.set("tokenizer.ggml.token_type", gguf::Array(types));
        metadata.set("tokenizer.ggml.eos_token_id", uint32_t{4});
        const Tokenizer tokenizer(vocabulary_from_gguf(metadata));
        return tokenizer.generation_ends();
    };
    EXPECT_THAT(ends({"<|return|>", "<|end|>", "<|call|>"}), testing::ElementsAre(4, 6));          // gpt-oss
    EXPECT_THAT(ends({"x", "<|end|>", "<|calls|>", "<|flush|>"}), testing::ElementsAre(4, 6, 7));  // Solar
    EXPECT_THAT(ends({"x", "<|end|>"}), testing::ElementsAre(4, 5));                               // Phi
    EXPECT_THAT(ends({"<turn|>", "</s>", "<|tool_response>"}), testing::ElementsAre(4, 6));        // Gemma 4
    EXPECT_THAT(ends({"x", "</s>"}), testing::ElementsAre(4, 5));
}

// Files of Phi-3 have many names, and names of others may have its name in them.
TEST(VocabularyFromGguf, Phi3IsKnownByItsArchitectureAndTokens) {
    for (const char* name : {"Phi-3-mini-4k-instruct", "Phi 3.5 Mini Instruct", "my tune"}) {
        gguf::Metadata metadata = example();
        metadata.set("general.name", std::string(name));
        EXPECT_FALSE(vocabulary_from_gguf(metadata).strips_after_special) << name;
        metadata.set("general.architecture", std::string("phi3"));
        EXPECT_FALSE(vocabulary_from_gguf(metadata).strips_after_special) << name << ": Phi-4, of byte-level BPE";
        metadata.set("tokenizer.ggml.model", std::string("llama"));
        EXPECT_TRUE(vocabulary_from_gguf(metadata).strips_after_special) << name;
    }
}

TEST(VocabularyFromGguf, ExtraWhitespaceIsSentencePiecesAlone) {
    gguf::Metadata metadata = example();
    metadata.set("tokenizer.ggml.remove_extra_whitespaces", true);
    EXPECT_THROW(vocabulary_from_gguf(metadata), Error);
    metadata.set("tokenizer.ggml.model", std::string("llama"));
    EXPECT_TRUE(vocabulary_from_gguf(metadata).remove_extra_blanks);
}

TEST(VocabularyFromGguf, OverrideOfThePretokenizer) {
    gguf::Metadata metadata = example();
    metadata.set("tokenizer.ggml.pre", std::string("strange"));
    EXPECT_THROW(Tokenizer(vocabulary_from_gguf(metadata)), Error);
    gguf::Override given = gguf::parse_override("tokenizer.ggml.pre=str:deepseek-llm");
    metadata.set(given.key, given.value);
    EXPECT_NO_THROW(Tokenizer(vocabulary_from_gguf(metadata)));
}

}  // namespace
}  // namespace tessera::text
