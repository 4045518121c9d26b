// Each sampler against its definition, computed plainly.
#include "core/session/sampler.hpp"
#include "tests/sampling/logits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>

namespace tessera::session {
namespace {

using Shares = std::map<int32_t, double>;  // probabilities by token

// Logits best first, and what their definitions make of them.
struct Plain {
    std::vector<std::pair<double, int32_t>> logits;

    explicit Plain(const std::vector<float>& from) {
        for (size_t i = 0; i < from.size(); ++i)
            if (from[i] != -kInfinity) logits.emplace_back(from[i], static_cast<int32_t>(i));
        std::ranges::sort(logits, [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        });
    }
    std::vector<double> probabilities() const {
        std::vector<double> p;
        double total = 0;
        for (const auto& [logit, token] : logits) total += p.emplace_back(std::exp(logit - logits[0].first));
        for (double& one : p) one /= total;
        return p;
    }
    Shares shares() const {
        Shares result;
        const std::vector<double> p = probabilities();
        for (size_t i = 0; i < p.size(); ++i) result[logits[i].second] = p[i];
        return result;
    }
    void temperature(double t) {
        for (auto& [logit, token] : logits) logit /= t;
    }
    double entropy() const {
        double sum = 0;
        for (const double p : probabilities())
            if (p > 0) sum -= p * std::log(p);
        return sum;
    }
};

Shares shares_of(const Sampler& sampler) {
    double total = 0;
    for (const Candidate& one : sampler.candidates()) total += one.weight;
    Shares result;
    for (const Candidate& one : sampler.candidates()) result[one.token] = one.weight / total;
    return result;
}

void expect_equal(const Shares& found, const Shares& expected, double tolerance = 1e-5) {
    ASSERT_EQ(found.size(), expected.size());
    for (const auto& [token, share] : expected) {
        ASSERT_TRUE(found.contains(token)) << token;
        ASSERT_NEAR(found.at(token), share, tolerance * std::max(share, 1e-3)) << token;
    }
}

Shares sampled(const SamplingParameters& p, const std::vector<float>& logits) {
    Sampler sampler(p, logits.size());
    sampler.sample(logits);
    return shares_of(sampler);
}

// With an eighth of them -infinity.
std::vector<float> mixed_logits(size_t size, uint64_t seed, float spread) {
    std::vector<float> logits = random_logits(size, seed, spread);
    for (size_t i = 0; i < size; i += 8) logits[i] = -kInfinity;
    return logits;
}

TEST(TopNSigma, KeepsWhatIsNearTheBestInDeviations) {
    for (const uint64_t seed : {1, 2, 3, 4}) {
        const std::vector<float> logits = mixed_logits(700, seed, 3.0f);
        for (const float width : {0.1f, 1.0f, 1.5f, 4.0f, 100.0f}) {
            Plain expected(logits);
            double mean = 0, square = 0;
            for (const auto& [logit, token] : expected.logits) mean += logit;
            mean /= static_cast<double>(expected.logits.size());
            for (const auto& [logit, token] : expected.logits) square += (logit - mean) * (logit - mean);
            const double deviation = std::sqrt(square / static_cast<double>(expected.logits.size()));
            const double least = expected.logits[0].first - static_cast<double>(width) * deviation;
            std::erase_if(expected.logits, [&](const auto& one) { return one.first < least; });
            SamplingParameters p = plain();
            p.top_n_sigma = width;
            expect_equal(sampled(p, logits), expected.shares());
        }
    }
    SamplingParameters p = plain();
    p.top_n_sigma = 1.0f;
    EXPECT_EQ(sampled(p, std::vector<float>(50, 2.0f)).size(), 50u);  // no deviation: all are the best
}

// What is left when XTC acts.
Plain without_top_choices(Plain plain, double threshold, size_t minimum = 0) {
    const std::vector<double> p = plain.probabilities();
    const auto above = static_cast<size_t>(std::ranges::count_if(p, [&](double one) { return one >= threshold; }));
    if (above >= 2 && p.size() - (above - 1) >= minimum)
        plain.logits.erase(plain.logits.begin(), plain.logits.begin() + static_cast<ptrdiff_t>(above) - 1);
    return plain;
}

TEST(Xtc, LeavesOutAllButTheLeastLikelyOfTheTopChoices) {
    for (const float spread : {0.2f, 1.0f, 3.0f}) {
        const std::vector<float> logits = mixed_logits(60, 5, spread);
        for (const float threshold : {0.0f, 0.01f, 0.02f, 0.05f, 0.1f, 0.3f, 0.5f}) {
            SamplingParameters p = plain();
            p.xtc_probability = 1.0f;
            p.xtc_threshold = threshold;
            expect_equal(sampled(p, logits),
                         without_top_choices(Plain(logits), static_cast<double>(threshold)).shares());
            p.min_keep = 50;
            expect_equal(sampled(p, logits),
                         without_top_choices(Plain(logits), static_cast<double>(threshold), 50).shares());
        }
    }
    // Of equals the last stays.
    SamplingParameters p = plain();
    p.xtc_probability = 1.0f;
    EXPECT_EQ(sampled(p, {-3, 1, 1, 1, -9}).count(3), 1u);
    EXPECT_EQ(sampled(p, {-3, 1, 1, 1, -9}).count(2), 0u);
}

TEST(Xtc, ActsWithItsProbability) {
    const std::vector<float> logits = {1.0f, 0.7f, 0.0f, -1.0f, -3.0f};
    SamplingParameters p = plain();
    p.xtc_probability = 0.3f;
    p.xtc_threshold = 0.15f;
    Sampler sampler(p, logits.size());
    const Shares all = Plain(logits).shares(), cut = without_top_choices(Plain(logits), 0.15).shares();
    constexpr int kDraws = 200'000;
    std::vector<double> seen(logits.size());
    for (int i = 0; i < kDraws; ++i) seen[static_cast<size_t>(sampler.sample(logits))] += 1.0 / kDraws;
    for (size_t i = 0; i < seen.size(); ++i) {
        const auto token = static_cast<int32_t>(i);
        const double share = 0.7 * all.at(token) + 0.3 * (cut.contains(token) ? cut.at(token) : 0.0);
        EXPECT_NEAR(seen[i], share, 5 * std::sqrt(share / kDraws)) << i;
    }
}

TEST(DynamicTemperature, FollowsTheEntropy) {
    for (const float spread : {0.05f, 1.0f, 4.0f, 30.0f}) {
        const std::vector<float> logits = mixed_logits(300, 6, spread);
        for (const auto& [temperature, range, exponent] :
             {std::tuple(1.0f, 0.5f, 1.0f), {0.8f, 0.8f, 2.0f}, {0.5f, 1.5f, 0.5f}, {1.0f, 0.3f, 0.0f}}) {
            Plain expected(logits);
            const double share = expected.entropy() / std::log(static_cast<double>(expected.logits.size()));
            const double lowest = std::max(0.0, static_cast<double>(temperature) - static_cast<double>(range));
            const double highest = static_cast<double>(temperature) + static_cast<double>(range);
            expected.temperature(lowest + (highest - lowest) * std::pow(share, static_cast<double>(exponent)));
            SamplingParameters p = plain();
            p.temperature = temperature;
            p.temperature_range = range;
            p.temperature_exponent = exponent;
            expect_equal(sampled(p, logits), expected.shares(), 1e-4);
        }
    }
}

TEST(DynamicTemperature, OfNoEntropyIsGreedy) {
    SamplingParameters p = plain();
    p.temperature = 0.5f;
    p.temperature_range = 0.5f;
    EXPECT_EQ(sampled(p, {0, 5000, 4000}).size(), 1u);
    // Temperature 0 with a range is not greedy.
    p.temperature = 0.0f;
    EXPECT_EQ(sampled(p, {1, 2, 3}).size(), 3u);
    p.order = {SamplingStep::kMinP};
    EXPECT_EQ(sampled(p, {1, 2, 3}).size(), 1u);
    // All alike have the highest temperature, which changes nothing of them.
    expect_equal(sampled(p = plain(), {1, 1, 1}), {{0, 1.0 / 3}, {1, 1.0 / 3}, {2, 1.0 / 3}});
}

TEST(MinKeep, IsHonouredByThoseThatTruncate) {
    const std::vector<float> logits = random_logits(100, 8, 5.0f);
    const Plain all(logits);
    const auto best = [&](size_t count) {
        Plain some = all;
        some.logits.resize(count);
        return some.shares();
    };
    SamplingParameters p = plain();
    p.min_keep = 7;
    p.top_p = 0.0f;
    expect_equal(sampled(p, logits), best(7));
    p = plain();
    p.min_keep = 7;
    p.min_p = 1.0f;
    expect_equal(sampled(p, logits), best(7));
    p.min_keep = 1000;
    expect_equal(sampled(p, logits), best(100));
    p = plain();
    p.min_keep = 7;
    p.typical_p = 0.0f;
    EXPECT_EQ(sampled(p, logits).size(), 7u);
}

// The surprise of each token among those that mirostat left, and the bound before each.
TEST(Mirostat, SecondVersionKeepsWhatSurprisesLessThanItsBound) {
    SamplingParameters p;
    p.mirostat = 2;
    p.mirostat_tau = 3.0f;
    p.mirostat_eta = 0.2f;
    p.temperature = 1.3f;
    Sampler sampler(p, 400);
    double bound = 2 * 3.0;
    for (uint64_t round = 0; round < 200; ++round) {
        const std::vector<float> logits = mixed_logits(400, round, 2.0f);
        Plain expected(logits);
        expected.temperature(static_cast<double>(p.temperature));
        const std::vector<double> probabilities = expected.probabilities();
        size_t count = 0;
        while (count < probabilities.size() && -std::log2(probabilities[count]) <= bound) ++count;
        expected.logits.resize(std::max<size_t>(count, 1));
        const int32_t token = sampler.sample(logits);
        expect_equal(shares_of(sampler), expected.shares(), 1e-4);
        sampler.accept(token);
        bound -= static_cast<double>(p.mirostat_eta) * (-std::log2(expected.shares().at(token)) - 3.0);
    }
}

TEST(Mirostat, FirstVersionKeepsAsManyAsZipfsLawAllows) {
    for (const float spread : {0.01f, 1.0f, 2.0f, 8.0f}) {
        SamplingParameters p;
        p.mirostat = 1;
        p.mirostat_tau = 4.0f;
        p.temperature = 0.9f;
        constexpr size_t kVocabulary = 600;
        Sampler sampler(p, kVocabulary);
        double bound = 8.0;
        for (uint64_t round = 0; round < 60; ++round) {
            const std::vector<float> logits = mixed_logits(kVocabulary, round, spread);
            Plain expected(logits);
            expected.temperature(static_cast<double>(p.temperature));
            const std::vector<double> probabilities = expected.probabilities();
            double products = 0, squares = 0;
            for (size_t i = 0; i < 99; ++i) {
                const double rank = std::log((i + 2.0) / (i + 1.0));
                products += rank * std::log(probabilities[i] / probabilities[i + 1]);
                squares += rank * rank;
            }
            const double s = products / squares, epsilon = s - 1;
            const double k = std::pow(
                epsilon * std::pow(2, bound) / (1 - std::pow(static_cast<double>(kVocabulary), -epsilon)), 1 / s);
            const auto count = static_cast<size_t>(std::clamp(k, 1.0, static_cast<double>(kVocabulary)));
            if (count < expected.logits.size()) expected.logits.resize(count);
            const int32_t token = sampler.sample(logits);
            // A count that is next to whole may be rounded either way.
            if (std::abs(k - std::round(k)) > 1e-3 * k || count >= probabilities.size())
                expect_equal(shares_of(sampler), expected.shares(), 1e-4);
            sampler.accept(token);
            bound -= 0.1 * (-std::log2(shares_of(sampler).at(token)) - 4.0);
        }
    }
}

TEST(Mirostat, MeanSurpriseComesNearTheTarget) {
    for (const int version : {1, 2}) {
        for (const float target : {1.0f, 3.0f}) {
            SamplingParameters p;
            p.mirostat = version;
            p.mirostat_tau = target;
            p.temperature = 1.0f;
            Sampler sampler(p, 500);
            double sum = 0;
            constexpr int kDraws = 1500;
            for (int i = 0; i < kDraws; ++i) {
                const std::vector<float> logits = random_logits(500, static_cast<uint64_t>(i), 2.0f);
                const int32_t token = sampler.sample(logits);
                sum -= std::log2(shares_of(sampler).at(token));
                sampler.accept(token);
            }
            EXPECT_NEAR(sum / kDraws, target, 0.1) << version << " " << target;
        }
    }
}

TEST(Mirostat, TakesThePlaceOfTruncationAndHonoursPenalties) {
    const std::vector<float> logits = random_logits(100, 9, 1.0f);
    SamplingParameters p = plain();
    p.mirostat = 2;
    p.mirostat_tau = 50.0f;
    SamplingParameters q = p;
    q.top_k = 3;
    q.min_p = 0.5f;
    q.top_n_sigma = 0.1f;
    q.xtc_probability = 1.0f;
    q.adaptive_target = 0.1f;
    q.order = parse_sampling_order("top_k;min_p");
    EXPECT_EQ(sampled(q, logits), sampled(p, logits));
    q.presence_penalty = 4.0f;
    q.temperature = 2.0f;
    Sampler sampler(q, 100);
    sampler.accept(17);
    sampler.sample(logits);
    Plain expected(logits);
    for (auto& [logit, token] : expected.logits)
        if (token == 17) logit -= 4.0;
    expected.temperature(2.0);
    expect_equal(shares_of(sampler), Plain(expected).shares(), 1e-4);
    // A token that was not drawn changes no bound, temperature 0 is greedy.
    p.temperature = 0.0f;
    EXPECT_EQ(sampled(p, logits).size(), 1u);
}

TEST(Mirostat, OneCandidateAndEqualOnes) {
    for (const int version : {1, 2}) {
        SamplingParameters p = plain();
        p.mirostat = version;
        Sampler sampler(p, 300);
        const std::vector<float> equal(300, 1.0f);
        const std::vector<uint32_t> one = {1u << 9};
        for (int i = 0; i < 200; ++i) {
            EXPECT_EQ(sampler.sample(equal, one), 9);
            sampler.accept(9);
            const int32_t token = sampler.sample(equal);
            EXPECT_TRUE(token >= 0 && token < 300);
            sampler.accept(token);
        }
        p.mirostat_tau = 0.0f;
        p.mirostat_eta = 1e6f;
        Sampler extreme(p, 300);
        for (uint64_t i = 0; i < 200; ++i) extreme.accept(extreme.sample(random_logits(300, i, 20.0f)));
        EXPECT_EQ(sampled(p, {3.0f}).size(), 1u);
    }
}

TEST(AdaptiveP, PrefersTokensNearItsMovingTarget) {
    for (const auto& [target, decay] : {std::pair(0.3f, 0.9f), {0.0f, 0.5f}, {1.0f, 0.99f}, {0.05f, 0.0f}}) {
        SamplingParameters p = plain();
        p.adaptive_target = target;
        p.adaptive_decay = decay;
        p.temperature = 1.2f;
        Sampler sampler(p, 50);
        const auto d = static_cast<double>(decay), t = static_cast<double>(target);
        double weights = 1 / (1 - d), sum = t / (1 - d);
        for (uint64_t round = 0; round < 100; ++round) {
            const std::vector<float> logits = mixed_logits(50, round, 2.0f);
            Plain before(logits);
            before.temperature(static_cast<double>(p.temperature));
            const Shares original = before.shares();
            const double aim = std::clamp(2 * t - sum / weights, 0.0, 1.0);
            Plain expected = before;
            for (auto& [logit, token] : expected.logits) {
                const double distance = std::abs(original.at(token) - aim) / 0.3;
                logit = 5 - 10 * distance * distance / (1 + distance);
            }
            std::ranges::sort(expected.logits, std::greater());
            const int32_t token = sampler.sample(logits);
            expect_equal(shares_of(sampler), expected.shares(), 1e-4);
            if (round % 7 == 3) {
                // Another token than the one drawn teaches nothing.
                sampler.accept(token == 1 ? 2 : 1);
                continue;
            }
            sampler.accept(token);
            sum = original.at(token) + d * sum;
            weights = 1 + d * weights;
        }
    }
}

TEST(AdaptiveP, DrawsLastWhereverItIsNamed) {
    const std::vector<float> logits = random_logits(80, 4, 2.0f);
    SamplingParameters p = plain();
    p.adaptive_target = 0.2f;
    p.temperature = 1.7f;
    const Shares last = sampled(p, logits);
    p.order = parse_sampling_order("adaptive_p;temperature");
    EXPECT_EQ(sampled(p, logits), last);
    p.order = parse_sampling_order("temperature");
    const Shares without = sampled(p, logits);
    EXPECT_NE(without, last);
    p.order = default_sampling_order();
    p.adaptive_target = -0.01f;
    EXPECT_EQ(sampled(p, logits), without);
}

TEST(Samplers, ChainsFollowTheOrder) {
    const std::vector<float> logits = mixed_logits(500, 11, 2.5f);
    const auto sigma = [](Plain& plain, double width) {
        double mean = 0, square = 0;
        const auto count = static_cast<double>(plain.logits.size());
        for (const auto& [logit, token] : plain.logits) mean += logit / count;
        for (const auto& [logit, token] : plain.logits) square += (logit - mean) * (logit - mean) / count;
        const double least = plain.logits[0].first - width * std::sqrt(square);
        std::erase_if(plain.logits, [&](const auto& one) { return one.first < least; });
    };
    const auto top_k = [](Plain& plain, size_t k) { plain.logits.resize(std::min(k, plain.logits.size())); };
    const auto min_p = [](Plain& plain, double share) {
        const double least = plain.logits[0].first + std::log(share);
        std::erase_if(plain.logits, [&](const auto& one) { return one.first < least; });
    };
    SamplingParameters p = plain();
    p.top_n_sigma = 1.7f;
    p.top_k = 30;
    p.min_p = 0.1f;
    p.xtc_probability = 1.0f;
    p.xtc_threshold = 0.06f;
    p.temperature = 1.5f;
    Plain expected(logits);
    sigma(expected, static_cast<double>(1.7f));
    top_k(expected, 30);
    min_p(expected, static_cast<double>(0.1f));
    expected = without_top_choices(expected, static_cast<double>(0.06f));
    expected.temperature(1.5);
    expect_equal(sampled(p, logits), expected.shares());

    p.order = parse_sampling_order("temperature;xtc;min_p;top_k;top_n_sigma");
    Plain other(logits);
    other.temperature(1.5);
    other = without_top_choices(other, static_cast<double>(0.06f));
    min_p(other, static_cast<double>(0.1f));
    top_k(other, 30);
    sigma(other, static_cast<double>(1.7f));
    expect_equal(sampled(p, logits), other.shares());
    EXPECT_NE(other.shares().size(), expected.shares().size());
}

TEST(Samplers, GreedyHonoursWhatMayLeaveOutTheBest) {
    const std::vector<float> logits = {3.0f, 2.9f, 2.8f, -5.0f};
    SamplingParameters p;
    p.temperature = 0.0f;
    p.xtc_probability = 1.0f;
    EXPECT_EQ(Sampler(p, 4).sample(logits), 2);
    p.order = parse_sampling_order("temperature;xtc");
    EXPECT_EQ(Sampler(p, 4).sample(logits), 0);
    p.xtc_threshold = 0.6f;
    p.order = default_sampling_order();
    EXPECT_EQ(Sampler(p, 4).sample(logits), 0);
}

TEST(Samplers, FieldsOfStepsThatAreOffChangeNoBit) {
    const std::vector<float> logits = random_logits(3000, 12);
    const auto drawn = [&](const SamplingParameters& p) {
        Sampler sampler(p, logits.size());
        std::vector<int32_t> tokens;
        for (int i = 0; i < 40; ++i) {
            tokens.push_back(sampler.sample(logits));
            sampler.accept(tokens.back());
        }
        return tokens;
    };
    const std::vector<int32_t> usual = drawn({});
    for (const auto& [name, value] : {std::pair("dynatemp_exponent", 3.0),
                                      {"dry_base", 3.0},
                                      {"dry_base", 0.0},
                                      {"dry_allowed_length", 0.0},
                                      {"dry_penalty_last_n", -1.0},
                                      {"xtc_threshold", 0.0},
                                      {"adaptive_decay", 0.1},
                                      {"mirostat_tau", 1.0},
                                      {"mirostat_eta", 1.0},
                                      {"top_n_sigma", 0.0},
                                      {"top_n_sigma", -3.0},
                                      {"adaptive_target", -0.01},
                                      {"repeat_last_n", -1.0},
                                      {"min_keep", 1.0},
                                      {"dynatemp_range", -1.0}}) {
        SamplingParameters p;
        find_sampling_field(name)->set(p, value);
        EXPECT_EQ(drawn(p), usual) << name << " " << value;
    }
    SamplingParameters p;
    p.xtc_probability = 0.5f;
    p.xtc_threshold = 0.51f;
    EXPECT_EQ(drawn(p), usual);
    p = {};
    p.dry_sequence_breakers = {"x"};
    EXPECT_EQ(drawn(p), usual);
    p.order = parse_sampling_order("top_k;typ_p;top_p;min_p;temperature");
    EXPECT_EQ(drawn(p), usual);
}

// The same on every machine and for ever, as Sampler.SeedsGiveThePublishedTokens.
TEST(Samplers, SeedsGiveThePublishedTokens) {
    std::vector<float> logits(1000);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>((i * 7919) % 1000) / 125.0f;
    const auto drawn = [&](const std::function<void(SamplingParameters&)>& change) {
        SamplingParameters p;
        p.seed = 42;
        p.top_k = 0;
        change(p);
        Sampler sampler(p, logits.size(), {200, std::make_shared<SequenceBreakers>()});
        std::vector<int32_t> tokens;
        for (int i = 0; i < 10; ++i) {
            tokens.push_back(sampler.sample(logits));
            sampler.accept(tokens.back());
        }
        return tokens;
    };
    using testing::ElementsAre;
    EXPECT_THAT(drawn([](auto& p) { p.top_n_sigma = 1.2f; }),
                ElementsAre(804, 532, 483, 494, 348, 210, 38, 124, 630, 766));
    EXPECT_THAT(drawn([](auto& p) { p.xtc_probability = 0.5f, p.xtc_threshold = 0.001f; }),
                ElementsAre(458, 815, 210, 766, 695, 868, 458, 497, 618, 670));
    EXPECT_THAT(drawn([](auto& p) { p.temperature_range = 0.5f, p.temperature_exponent = 1.5f; }),
                ElementsAre(459, 335, 138, 741, 707, 494, 594, 544, 445, 828));
    EXPECT_THAT(drawn([](auto& p) { p.mirostat = 1; }), ElementsAre(261, 642, 940, 321, 336, 321, 606, 963, 346, 605));
    EXPECT_THAT(drawn([](auto& p) { p.mirostat = 2; }), ElementsAre(766, 642, 754, 138, 903, 99, 569, 371, 284, 396));
    EXPECT_THAT(drawn([](auto& p) { p.adaptive_target = 0.01f; }),
                ElementsAre(843, 719, 201, 371, 498, 235, 15, 619, 742, 866));
    EXPECT_THAT(drawn([](auto& p) { p.dry_multiplier = 3.0f, p.dry_allowed_length = 0, p.temperature = 0.1f; }),
                ElementsAre(778, 173, 778, 642, 951, 963, 852, 247, 926, 889));
}

TEST(Samplers, RandomParametersAlwaysKeepSomething) {
    std::mt19937_64 random(15);
    std::vector<SamplingStep> steps = default_sampling_order();
    const auto share = [&] { return static_cast<float>(random() % 1001) / 1000.0f; };
    const auto often = [&](float on, float off) { return random() % 2 ? on : off; };
    for (int round = 0; round < 1500; ++round) {
        SamplingParameters p;
        std::ranges::shuffle(steps, random);
        p.order = steps;
        p.temperature = share() * 3;
        p.temperature_range = often(share() * 3, 0);
        p.temperature_exponent = share() * 3;
        p.top_k = static_cast<int32_t>(random() % 20) - 1;
        p.top_p = share();
        p.min_p = share();
        p.typical_p = often(share(), 1);
        p.top_n_sigma = share() * 4 - 1;
        p.xtc_probability = share();
        p.xtc_threshold = share();
        p.repetition_penalty = 0.5f + share();
        p.frequency_penalty = share() - 0.5f;
        p.dry_multiplier = often(share() * 9 - 3, 0);
        p.dry_base = 1 + share();
        p.dry_allowed_length = static_cast<int32_t>(random() % 4);
        p.dry_last_n = static_cast<int32_t>(random() % 30) - 1;
        p.adaptive_target = often(share(), -1);
        p.adaptive_decay = share() * 0.99f;
        p.mirostat = static_cast<int32_t>(random() % 5) > 2 ? static_cast<int32_t>(1 + random() % 2) : 0;
        p.mirostat_tau = share() * 6;
        p.mirostat_eta = share();
        p.min_keep = static_cast<int32_t>(random() % 5);
        p.seed = random();
        std::vector<float> logits = random_logits(100, random(), round % 3 == 0 ? 0.0f : 10.0f);
        for (float& one : logits)
            if (random() % 4 == 0) one = round % 5 ? -kInfinity : -3e38f;
        logits[7] = 0.0f;
        const std::vector<uint32_t> mask = {1u << 7 | static_cast<uint32_t>(random()), 0, 0, 0};
        auto breakers = std::make_shared<SequenceBreakers>();
        breakers->add(3, {});
        breakers->add(4, {5, 6});
        Sampler sampler(p, logits.size(), {25, breakers});
        for (int i = 0; i < 12; ++i) {
            const int32_t token = sampler.sample(logits, i % 3 == 0 ? mask : TokenMask());
            ASSERT_GE(token, 0);
            ASSERT_LT(token, 100);
            ASSERT_NE(logits[static_cast<size_t>(token)], -kInfinity);
            if (i % 3 == 0) {
                ASSERT_TRUE(token < 32 && (mask[0] >> token & 1));
            }
            sampler.accept(token);
        }
    }
}

}  // namespace
}  // namespace tessera::session
