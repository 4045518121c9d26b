#include "core/session/sampler.hpp"

#include "core/base/error.hpp"
#include "core/session/sampling_math.hpp"
#include "tests/sampling/logits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace tessera::session {
namespace {

// Token numbers of what a sample was drawn from.
std::set<int32_t> kept(const SamplingParameters& p, const std::vector<float>& logits) {
    Sampler sampler(p, logits.size());
    sampler.sample(logits);
    std::set<int32_t> tokens;
    for (const Sampler::Candidate& one : sampler.candidates()) tokens.insert(one.token);
    return tokens;
}

std::vector<int32_t> ranking(const std::vector<float>& logits) {
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return logits[a] > logits[b]; });
    return order;
}

TEST(SamplingMath, ExponentialIsExactToRounding) {
    EXPECT_EQ(exp_of_negative(0.0), 1.0);
    EXPECT_EQ(exp_of_negative(-kInfinity), 0.0);
    EXPECT_EQ(exp_of_negative(-1e300), 0.0);
    for (double x = 0; x > -708; x -= 0.0371) EXPECT_NEAR(exp_of_negative(x) / std::exp(x), 1.0, 1e-15) << x;
}

TEST(SamplingMath, LogarithmsAndPowersAreExactToRounding) {
    EXPECT_EQ(logarithm(1.0), 0.0);
    for (double x = 1e-300; x < 1e300; x *= 1.37) {
        EXPECT_NEAR(logarithm(x), std::log(x), 3e-16 * std::max(1.0, std::abs(std::log(x)))) << x;
    }
    for (double x = 0.4; x < 2.5; x += 1e-3) EXPECT_NEAR(logarithm(x), std::log(x), 3e-16) << x;
    EXPECT_EQ(power_below_one(0.0, 0.0), 1.0);
    EXPECT_EQ(power_below_one(0.0, 2.0), 0.0);
    EXPECT_EQ(power_below_one(1.0, 1e6), 1.0);
    for (double x = 0.01; x < 1; x += 0.01)
        for (const double y : {0.3, 1.0, 2.5, 20.0}) EXPECT_NEAR(power_below_one(x, y) / std::pow(x, y), 1, 1e-13);
    EXPECT_EQ(whole_power(1.75, 0), 1.0);
    EXPECT_EQ(whole_power(2.0, 10), 1024.0);
    EXPECT_NEAR(whole_power(1.75, 40) / std::pow(1.75, 40), 1, 1e-14);
    EXPECT_EQ(whole_power(1e6, 1000), static_cast<double>(kInfinity));
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
    const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f, -kInfinity, 0.5f};
    const std::vector<double> p = softmax(logits);
    Sampler sampler(plain(), logits.size());
    std::vector<double> seen(logits.size());
    constexpr int kDraws = 200'000;
    for (int i = 0; i < kDraws; ++i) seen[static_cast<size_t>(sampler.sample(logits))] += 1.0 / kDraws;
    EXPECT_EQ(seen[4], 0.0);
    for (size_t i = 0; i < p.size(); ++i) EXPECT_NEAR(seen[i], p[i], 5 * std::sqrt(p[i] / kDraws) + 1e-9) << i;
}

// The same on every machine and for ever: a change here changes what users get for a seed.
TEST(Sampler, SeedsGiveThePublishedTokens) {
    SamplingParameters p;
    p.seed = 42;
    std::vector<float> logits(1000);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 7919) % 1000) / 125.0f;
    Sampler sampler(p, logits.size());
    std::vector<int32_t> tokens;
    for (int i = 0; i < 12; ++i) tokens.push_back(sampler.sample(logits));
    EXPECT_THAT(tokens, testing::ElementsAre(988, 383, 988, 605, 914, 284, 741, 173, 210, 494, 321, 99));
    sampler.reset();
    EXPECT_EQ(sampler.sample(logits), tokens[0]);
    p.seed = 43;
    Sampler other(p, logits.size());
    std::vector<int32_t> different;
    for (int i = 0; i < 12; ++i) different.push_back(other.sample(logits));
    EXPECT_NE(different, tokens);
}

TEST(Sampler, GreedyTakesTheBestAndTheFirstOfEquals) {
    SamplingParameters p;
    p.temperature = 0.0f;
    Sampler sampler(p, 5);
    EXPECT_EQ(sampler.sample(std::vector<float>{1, 5, 3, 5, -2}), 1);
    EXPECT_EQ(sampler.sample(std::vector<float>{-9, -5, -3, -5, -kInfinity}), 2);
    EXPECT_EQ(sampler.candidates().size(), 1u);
}

TEST(Sampler, GreedyHonoursPenaltiesAndBias) {
    SamplingParameters p;
    p.temperature = 0.0f;
    p.repetition_penalty = 2.0f;
    p.logit_bias = {{2, -kInfinity}, {4, 1.5f}};
    Sampler sampler(p, 5);
    const std::vector<float> logits = {1, 3, 9, 2.5f, 1};
    EXPECT_EQ(sampler.sample(logits), 1);
    sampler.accept(1);
    EXPECT_EQ(sampler.sample(logits), 3);  // 3 / 2 < 2.5, and 1 + 1.5 ties but comes later
    sampler.accept(3);
    EXPECT_EQ(sampler.sample(logits), 4);
}

TEST(Sampler, DrawsFromWhatAMaskAllows) {
    SamplingParameters p;
    p.temperature = 0.0f;
    Sampler greedy(p, 70);
    std::vector<float> logits(70);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i);
    const std::vector<uint32_t> mask = {1u << 3 | 1u << 31, 1u << 1, 1u << 2};
    EXPECT_EQ(greedy.sample(logits), 69);
    EXPECT_EQ(greedy.sample(logits, mask), 66);
    // Tokens past its end are not allowed.
    EXPECT_EQ(greedy.sample(logits, TokenMask(mask).first(2)), 33);
    EXPECT_EQ(greedy.sample(logits, TokenMask(mask).first(1)), 31);
    EXPECT_THROW(greedy.sample(logits, std::vector<uint32_t>{0, 0, 0}), Error);

    p.temperature = 5.0f;
    p.top_k = 0;
    Sampler random(p, 70);
    std::set<int32_t> drawn;
    for (int i = 0; i < 300; ++i) drawn.insert(random.sample(std::vector<float>(70), mask));
    EXPECT_EQ(drawn, (std::set<int32_t>{3, 31, 33, 66}));
    // The same draws as if all others were forbidden by bias.
    for (size_t i = 0; i < 70; ++i) {
        if (!drawn.contains(static_cast<int32_t>(i))) p.logit_bias.emplace_back(static_cast<int32_t>(i), -kInfinity);
    }
    p.top_k = 3;
    Sampler biased(p, 70);
    p.logit_bias.clear();
    Sampler masked(p, 70);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(masked.sample(logits, mask), biased.sample(logits));
}

TEST(Sampler, TopKKeepsTheKBest) {
    const std::vector<float> logits = random_logits(5000, 1);
    const std::vector<int32_t> order = ranking(logits);
    for (const int k : {1, 2, 40, 4999, 5000, 100000}) {
        SamplingParameters p = plain();
        p.top_k = k;
        const size_t count = std::min<size_t>(k, 5000);
        EXPECT_EQ(kept(p, logits), std::set<int32_t>(order.begin(), order.begin() + count)) << k;
    }
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesP) {
    for (const float spread : {0.01f, 1.0f, 6.0f}) {
        const std::vector<float> logits = random_logits(3000, 2, spread);
        const std::vector<int32_t> order = ranking(logits);
        const std::vector<double> probability = softmax(logits);
        for (const float top_p : {0.0f, 0.1f, 0.5f, 0.95f, 0.999f}) {
            SamplingParameters p = plain();
            p.top_p = top_p;
            size_t count = 0;
            double sum = 0;
            do sum += probability[static_cast<size_t>(order[count++])];
            while (sum < static_cast<double>(top_p) && count < order.size());
            EXPECT_EQ(kept(p, logits), std::set<int32_t>(order.begin(), order.begin() + static_cast<ptrdiff_t>(count)))
                << top_p << " " << spread;
        }
    }
}

TEST(Sampler, MinPKeepsWhatIsNearTheBest) {
    const std::vector<float> logits = random_logits(3000, 3);
    const std::vector<double> probability = softmax(logits);
    const double best = *std::ranges::max_element(probability);
    for (const float min_p : {0.0f, 0.01f, 0.05f, 0.5f, 1.0f}) {
        SamplingParameters p = plain();
        p.min_p = min_p;
        std::set<int32_t> expected;
        for (size_t i = 0; i < probability.size(); ++i)
            if (probability[i] >= static_cast<double>(min_p) * best) expected.insert(static_cast<int32_t>(i));
        EXPECT_EQ(kept(p, logits), expected) << min_p;
    }
}

TEST(Sampler, TypicalKeepsWhatIsNearTheEntropy) {
    for (const float spread : {0.5f, 2.0f, 6.0f}) {
        const std::vector<float> logits = random_logits(2000, 4, spread);
        const std::vector<double> probability = softmax(logits);
        double entropy = 0;
        for (const double p : probability) entropy -= p * std::log(p);
        std::vector<int32_t> order(logits.size());
        std::iota(order.begin(), order.end(), 0);
        const auto distance = [&](int32_t i) {
            return std::abs(-std::log(probability[static_cast<size_t>(i)]) - entropy);
        };
        std::ranges::sort(order, [&](int32_t a, int32_t b) { return distance(a) < distance(b); });
        for (const float typical : {0.1f, 0.5f, 0.9f}) {
            SamplingParameters p = plain();
            p.typical_p = typical;
            std::set<int32_t> expected;
            double sum = 0;
            for (size_t i = 0; i < order.size() && sum < static_cast<double>(typical); ++i) {
                sum += probability[static_cast<size_t>(order[i])];
                expected.insert(order[i]);
            }
            EXPECT_EQ(kept(p, logits), expected) << typical << " " << spread;
        }
    }
}

TEST(Sampler, TemperatureSharpensAndNeverOverflows) {
    const std::vector<float> logits = {1.0f, 2.0f, 3.0f};
    for (const float temperature : {0.5f, 1.0f, 2.0f}) {
        SamplingParameters p = plain();
        p.temperature = temperature;
        Sampler sampler(p, 3);
        sampler.sample(logits);
        EXPECT_NEAR(sampler.candidates()[0].weight, std::exp(-2.0 / static_cast<double>(temperature)), 1e-6);
    }
    for (const float temperature : {1e-38f, 1e-45f, 1e6f}) {
        SamplingParameters p = plain();
        p.temperature = temperature;
        p.order = {SamplingStep::kTemperature, SamplingStep::kTypical, SamplingStep::kTopP, SamplingStep::kMinP};
        p.typical_p = p.top_p = 0.9f;
        const int32_t token = Sampler(p, 3).sample(std::vector<float>{-3e38f, 2.0f, 3e38f});
        EXPECT_TRUE(temperature > 1.0f || token == 2) << temperature;
    }
}

TEST(Sampler, PenaltiesByDefinition) {
    SamplingParameters p = plain();
    p.repetition_penalty = 1.5f;
    p.frequency_penalty = 0.25f;
    p.presence_penalty = 0.5f;
    p.penalty_last_n = -1;
    Sampler sampler(p, 4);
    for (const int token : {1, 1, 2}) sampler.accept(token);
    sampler.sample(std::vector<float>{3.0f, 3.0f, -2.0f, -2.0f});
    std::map<int32_t, float> logits;
    for (const Sampler::Candidate& one : sampler.candidates()) logits[one.token] = one.logit;
    EXPECT_FLOAT_EQ(logits[1] - logits[0], 3.0f / 1.5f - 2 * 0.25f - 0.5f - 3.0f);
    EXPECT_FLOAT_EQ(logits[2] - logits[3], -2.0f * 1.5f - 0.25f - 0.5f + 2.0f);
}

TEST(Sampler, PenaltiesLookBackOnTheLastNAlone) {
    SamplingParameters p;
    p.temperature = 0.0f;
    p.presence_penalty = 100.0f;
    const std::vector<float> logits = {5, 4, 3, 2, 1};
    p.penalty_last_n = 2;
    Sampler two(p, 5);
    p.penalty_last_n = -1;
    Sampler all(p, 5);
    p.penalty_last_n = 0;
    Sampler none(p, 5);
    std::vector<int32_t> from_two, from_all, from_none;
    for (int i = 0; i < 5; ++i) {
        for (auto [sampler, tokens] : {std::pair(&two, &from_two), {&all, &from_all}, {&none, &from_none}}) {
            tokens->push_back(sampler->sample(logits));
            sampler->accept(tokens->back());
        }
    }
    EXPECT_THAT(from_two, testing::ElementsAre(0, 1, 2, 0, 1));
    EXPECT_THAT(from_all, testing::ElementsAre(0, 1, 2, 3, 4));
    EXPECT_THAT(from_none, testing::Each(0));
    all.reset();
    EXPECT_EQ(all.sample(logits), 0);
}

TEST(Sampler, TheOrderMatters) {
    // Two good tokens and a long tail. Hot first, the tail counts for more, and top-p keeps some of it.
    std::vector<float> logits(1000, 0.0f);
    logits[0] = logits[1] = 8.0f;
    SamplingParameters p = plain();
    p.temperature = 4.0f;
    p.top_p = 0.5f;
    p.order = parse_sampling_order("top_p;temperature");
    EXPECT_EQ(kept(p, logits).size(), 2u);
    p.order = parse_sampling_order("temperature;top_p");
    EXPECT_GT(kept(p, logits).size(), 100u);
    // What is not named is left out; penalties are the exception.
    p.order = {};
    EXPECT_EQ(kept(p, logits).size(), 1000u);
    p.presence_penalty = 1.0f;
    EXPECT_EQ(format_sampling_order(Sampler(p, 10).parameters().order), "penalties");
}

TEST(Sampler, RandomOrdersAlwaysKeepSomething) {
    std::mt19937_64 random(5);
    std::vector<SamplingStep> steps = parse_sampling_order("penalties;top_k;typ_p;top_p;min_p;temperature");
    for (int round = 0; round < 500; ++round) {
        SamplingParameters p;
        std::ranges::shuffle(steps, random);
        p.order = steps;
        const auto share = [&] { return static_cast<float>(random() % 1001) / 1000.0f; };
        p.temperature = share() * 3;
        p.top_k = static_cast<int32_t>(random() % 20) - 1;
        p.top_p = share();
        p.min_p = share();
        p.typical_p = share();
        p.repetition_penalty = 0.5f + share();
        p.frequency_penalty = share() - 0.5f;
        std::vector<float> logits = random_logits(200, random(), 10.0f);
        for (float& one : logits)
            if (random() % 4 == 0) one = -kInfinity;
        logits[7] = 0.0f;
        Sampler sampler(p, logits.size());
        for (int i = 0; i < 5; ++i) {
            const int32_t token = sampler.sample(logits);
            ASSERT_GE(token, 0);
            ASSERT_LT(token, 200);
            ASSERT_NE(logits[static_cast<size_t>(token)], -kInfinity);
            sampler.accept(token);
        }
    }
}

TEST(Sampler, BrokenLogitsAreErrors) {
    Sampler sampler(plain(), 3);
    EXPECT_THROW(sampler.sample(std::vector<float>{1, std::nanf(""), 2}), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>{1, kInfinity, 2}), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>{-kInfinity, -kInfinity, -kInfinity}), Error);
    EXPECT_THROW(sampler.sample(std::vector<float>{1, 2}), Error);
    EXPECT_THROW(sampler.accept(3), Error);
    EXPECT_THROW(sampler.accept(-1), Error);
    EXPECT_NO_THROW(sampler.sample(std::vector<float>{1, 2, 3}));
}

}  // namespace
}  // namespace tessera::session
