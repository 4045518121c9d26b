// Probabilities of tokens, of answers and of prompts.
#include "tests/session/service_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tessera::session {
namespace {

TEST_F(ServiceTest, ProbabilitiesAreThoseOfTheModel) {
    load(64, 1, 1024);
    Result result;
    std::vector<TokenProbabilities> tokens;
    serve({}, [&](Service& service) {
        Request made = request(question(2), result, 8);
        made.probabilities = 3;
        made.on_token = [&](const ShownToken& token, const Answer&) { tokens.push_back(*token.probabilities); };
        service.submit(std::move(made));
    });
    ASSERT_EQ(tokens.size(), 8u);
    for (size_t i = 0; i < tokens.size(); ++i) {
        EXPECT_EQ(tokens[i].token, result.answer.tokens[result.answer.prompt_tokens + i]);
        ASSERT_EQ(tokens[i].best.size(), 3u);
        EXPECT_EQ(tokens[i].best[0].first, tokens[i].token) << "the most likely one is chosen";
        EXPECT_EQ(tokens[i].best[0].second, tokens[i].log_probability);
        EXPECT_LE(tokens[i].log_probability, 0);
    }
}

TEST_F(ServiceTest, ProbabilitiesOfWhatSamplersLeaveSumToOne) {
    load(64, 1, 1024);
    Result result;
    std::vector<TokenProbabilities> tokens;
    serve({}, [&](Service& service) {
        Request made = request(question(2), result, 8);
        made.sampling.temperature = 2;
        made.sampling.top_k = 3;
        made.sampling.min_p = 0;
        made.sampling.top_p = 1;
        made.probabilities = 5;
        made.sampled_probabilities = true;
        made.on_token = [&](const ShownToken& token, const Answer&) { tokens.push_back(*token.probabilities); };
        service.submit(std::move(made));
    });
    ASSERT_FALSE(tokens.empty());
    for (const TokenProbabilities& one : tokens) {
        ASSERT_EQ(one.best.size(), 3u);
        double sum = 0;
        for (const auto& [token, probability] : one.best) sum += std::exp(static_cast<double>(probability));
        EXPECT_NEAR(sum, 1, 1e-6);
        EXPECT_TRUE(std::ranges::any_of(
            one.best, [&](const auto& pair) { return pair.first == one.token && pair.second == one.log_probability; }));
    }
}

TEST_F(ServiceTest, ProbabilitiesOfAPromptAreThoseOfItsContinuation) {
    load(64, 2, 1024);
    const std::string prompt = "<｜User｜>Count from 1 to 10 in French.<｜Assistant｜>";
    Result said, other;
    std::vector<TokenProbabilities> made, scored;
    Generator generator(engine(), *tokenizer_);
    Request first = request(prompt, said, 12);
    first.probabilities = 2;
    first.on_token = [&](const ShownToken& token, const Answer&) { made.push_back(*token.probabilities); };
    generator.add(std::move(first));
    generator.run();
    Result result;
    Request again = request("", result, 0);
    again.prompt = said.answer.tokens;
    again.reuse = false;
    again.prompt_probabilities = 2;
    again.on_prompt_probabilities = [&](const TokenProbabilities& token) { scored.push_back(token); };
    generator.add(std::move(again));
    generator.add(request(question(3), other, 12));  // company changes nothing
    generator.run();
    EXPECT_EQ(result.answer.reason, FinishReason::kLength);
    ASSERT_EQ(scored.size() + 1, said.answer.tokens.size());
    for (size_t i = 0; i < scored.size(); ++i) EXPECT_EQ(scored[i].token, said.answer.tokens[i + 1]);
    for (size_t i = 0; i < made.size(); ++i) {
        const TokenProbabilities& one = scored[said.answer.prompt_tokens - 1 + i];
        EXPECT_EQ(one.token, made[i].token);
        EXPECT_NEAR(one.log_probability, made[i].log_probability, 1e-3);
        EXPECT_EQ(one.best.size(), 2u);
    }
}

}  // namespace
}  // namespace tessera::session
