// Reasoning that is ended after a number of tokens, or when that is asked for.
#include "apps/structure/reasoning_limit.hpp"

#include "tests/structure/held_text.hpp"

#include <gmock/gmock.h>

namespace tessera::structure {
namespace {

class ReasoningLimitTest : public StructureTest {
  protected:
    std::unique_ptr<session::TokenConstraint> limited(const text::ReplySyntax& syntax, uint32_t tokens,
                                                      std::shared_ptr<const std::atomic<bool>> end = nullptr) {
        return limit_reasoning(nullptr, syntax, *tokenizer_, {tokens, std::move(end)});
    }

    // Lets the answer be `text`, until tokens are forced. Returns their text, and how many of `text` came before.
    std::pair<std::string, size_t> forced_after(session::TokenConstraint& constraint, std::string_view text) {
        size_t count = 0;
        for (const text::Token token : tokenizer_->encode(text, {.add_special = false})) {
            if (!constraint.forced().empty()) break;
            constraint.accept(std::span(&token, 1));
            ++count;
        }
        std::string made;
        for (const text::Token token : constraint.forced()) made += tokenizer_->bytes(token);
        return {made, count};
    }
};

constexpr std::string_view kLong = "one two three four five six seven eight nine ten eleven twelve";

text::ReplySyntax thinking(bool begun) {
    return {.reasoning = true, .begins_in_reasoning = begun};
}

TEST_F(ReasoningLimitTest, TheClosingMarkerIsForcedOnce) {
    const auto constraint = limited(thinking(true), 3);
    const auto [marker, count] = forced_after(*constraint, kLong);
    EXPECT_EQ(marker, "</think>");
    EXPECT_EQ(count, 3);
    const std::vector<int32_t> forced(constraint->forced().begin(), constraint->forced().end());
    // One at a time, as where each has probabilities.
    for (size_t i = 0; i < forced.size(); ++i) {
        ASSERT_FALSE(constraint->forced().empty());
        EXPECT_EQ(constraint->forced().front(), forced[i]);
        constraint->accept(std::span(&forced[i], 1));
    }
    EXPECT_EQ(forced_after(*constraint, kLong).first, "");
}

TEST_F(ReasoningLimitTest, OnlyReasoningCounts) {
    EXPECT_EQ(forced_after(*limited(thinking(false), 3), kLong).first, "");
    EXPECT_EQ(forced_after(*limited(thinking(false), 3), "\n<think>" + std::string(kLong)).first, "</think>");
    EXPECT_EQ(forced_after(*limited(thinking(true), 100), "one</think>" + std::string(kLong)).first, "");
    EXPECT_EQ(forced_after(*limited({}, 0), kLong).first, "");
    EXPECT_EQ(forced_after(*limited(thinking(true), 0), kLong), (std::pair<std::string, size_t>("</think>", 0)));
}

TEST_F(ReasoningLimitTest, ItEndsWhenThatIsAskedFor) {
    const auto end = std::make_shared<std::atomic<bool>>(false);
    const auto constraint = limited(thinking(true), ReasoningLimit::kNone, end);
    EXPECT_EQ(forced_after(*constraint, kLong).first, "");
    *end = true;
    EXPECT_EQ(forced_after(*constraint, "").first, "</think>");
}

TEST_F(ReasoningLimitTest, ChannelsGoOnWithTheNextMessage) {
    const text::ReplySyntax syntax{.framing = text::ReplyFraming::kChannels, .reasoning = true};
    const std::string analysis = "<|channel|>analysis<|message|>" + std::string(kLong);
    const auto constraint = limited(syntax, 2);
    EXPECT_EQ(forced_after(*constraint, analysis).first, "<|end|><|start|>assistant");
    const std::vector<int32_t> forced(constraint->forced().begin(), constraint->forced().end());
    constraint->accept(forced);
    EXPECT_EQ(forced_after(*constraint, analysis).first, "<|end|><|start|>assistant<|channel|>final<|message|>");
    EXPECT_EQ(forced_after(*limited(syntax, 2), "<|channel|>final<|message|>" + std::string(kLong)).first, "");
}

TEST_F(ReasoningLimitTest, WhatBeginsReasoningIsNotLookedForWithoutEnd) {
    const text::ReplySyntax channels{.framing = text::ReplyFraming::kChannels, .reasoning = true};
    const std::string begun = "<|channel|>analysis<|message|>" + std::string(kLong);
    EXPECT_EQ(forced_after(*limited(channels, 2), std::string(100, 'x') + begun).first, "<|end|><|start|>assistant");
    EXPECT_EQ(forced_after(*limited(channels, 2), std::string(1000, 'x') + begun).first, "");
    EXPECT_EQ(
        forced_after(*limited(thinking(false), 3), std::string(1000, '\n') + "<think>" + std::string(kLong)).first, "");
}

TEST(ReasoningTokens, AFormIsAlwaysReached) {
    EXPECT_EQ(reasoning_tokens({}, 200, false), ReasoningLimit::kNone);
    EXPECT_EQ(reasoning_tokens(-1, 200, true), 100);
    EXPECT_EQ(reasoning_tokens({}, 200, true), 100);
    EXPECT_EQ(reasoning_tokens(32, 200, true), 32);
    EXPECT_EQ(reasoning_tokens(150, 200, true), 150);
    EXPECT_EQ(reasoning_tokens(1000, 200, true), 100);
    EXPECT_EQ(reasoning_tokens(1000, 200, false), 1000);
    EXPECT_EQ(reasoning_tokens({}, 0, true), 0);
}

}  // namespace
}  // namespace tessera::structure
