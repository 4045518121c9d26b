#include "core/session/make_sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::session {
namespace {

using text::Token;
using text::TokenType;

text::Tokenizer tokenizer() {
    text::VocabularyData data;
    data.model = "llama";
    data.tokens = {"<unk>", "<s>", "</s>", "<0x0A>", "\u2581", "U",      "s",       "e",    "r",
                   ":",     "Us",  "er",   "er:",    "x:y",    "User:x", "\u2581U", "ab\"", "b"};
    data.types.assign(data.tokens.size(), TokenType::kNormal);
    data.types[0] = TokenType::kUnknown;
    data.types[1] = data.types[2] = TokenType::kControl;
    data.types[3] = TokenType::kByte;
    for (size_t i = 0; i < data.tokens.size(); ++i) data.scores.push_back(-static_cast<float>(i));
    data.unk = 0;
    data.bos = 1;
    data.eos = 2;
    return text::Tokenizer(std::move(data));
}

TEST(SequenceBreakers, AreTokensThatHoldThemAndSequencesThatDo) {
    const text::Tokenizer all = tokenizer();
    const auto token = [&](std::string_view spelling) { return all.find(spelling); };
    const auto found = find_sequence_breakers(std::vector<std::string>{"User:", "\"", "\n"}, all);
    for (const std::string_view alone : {"User:x", "ab\"", "<0x0A>"}) EXPECT_TRUE(found->alone(token(alone))) << alone;
    for (const std::string_view part : {"U", "Us", ":", "er:", "b"}) EXPECT_FALSE(found->alone(token(part))) << part;
    // The rest is spelt as within a text, without the blank that begins one.
    const std::vector<Token> rest = {token("s"), token("er:"), token("b")};
    EXPECT_EQ(found->match(token("U"), rest), 2);
    EXPECT_EQ(found->match(token("\u2581U"), rest), 2);
    EXPECT_EQ(found->match(token("Us"), std::span(rest).subspan(1)), 1);
    EXPECT_EQ(found->match(token("U"), std::span(rest).first(1)), -1);
    EXPECT_EQ(found->match(token("s"), rest), -1);
    EXPECT_EQ(found->match(token("User:x"), rest), 0);
    EXPECT_EQ(found->longest_tail(), 2u);
    EXPECT_TRUE(find_sequence_breakers({}, all)->empty());
}

TEST(MakeSampler, BreakersEndRepetitions) {
    const text::Tokenizer all = tokenizer();
    SamplingParameters p;
    p.temperature = 0.0f;
    p.dry_multiplier = 100.0f;
    p.dry_last_n = -1;
    std::vector<float> logits(all.size(), 0.0f);
    const Token b = all.find("b"), e = all.find("e");
    logits[static_cast<size_t>(e)] = 2.0f;
    const auto best = [&](std::vector<std::string> breakers) {
        p.dry_sequence_breakers = std::move(breakers);
        Sampler sampler = make_sampler(p, all, 100);
        // "b r : b e ... b r : b": e would continue it.
        for (const std::string_view one : {"b", "r", ":", "b", "e", "s", "b", "r", ":", "b"})
            sampler.accept(all.find(one));
        return sampler.sample(logits);
    };
    EXPECT_NE(best({}), e);
    EXPECT_NE(best({"\n"}), e);
    EXPECT_EQ(best({":"}), e);  // one token since the breaker, two are allowed
    EXPECT_EQ(best({"r:b"}), e);
    EXPECT_NE(b, text::kNoToken);
}

}  // namespace
}  // namespace tessera::session
