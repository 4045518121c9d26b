#include "core/base/error.hpp"
#include "core/session/sampler.hpp"
#include "tests/sampling/logits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tessera::session {
namespace {

using Tokens = std::vector<int32_t>;

std::shared_ptr<const SequenceBreakers> breakers(const std::vector<Tokens>& sequences) {
    auto all = std::make_shared<SequenceBreakers>();
    for (const Tokens& one : sequences) all->add(one.front(), Tokens(one.begin() + 1, one.end()));
    return all;
}

// By definition: for each earlier place whose end is like the text's end, the token that followed there would continue
// the repetition. Nothing before the last breaker counts as part of it. Cubic.
std::map<int32_t, int> repetitions(Tokens text, const std::vector<Tokens>& breakers, size_t window, int allowed) {
    if (text.size() > window) text.erase(text.begin(), text.end() - static_cast<ptrdiff_t>(window));
    const auto count = static_cast<int>(text.size());
    if (count <= allowed) return {};
    int limit = count;
    for (int start = count - 1; start >= 0 && limit == count; --start) {
        for (const Tokens& one : breakers) {
            const auto size = static_cast<int>(one.size());
            if (start + size <= count && std::equal(one.begin(), one.end(), text.begin() + start))
                limit = std::min(limit, count - start - size);
        }
    }
    std::map<int32_t, int> longest;
    for (int next = 1; next < count; ++next) {
        int length = 0;
        while (length < limit && length < next && text[next - 1 - length] == text[count - 1 - length]) ++length;
        const bool breaks = std::ranges::find(breakers, Tokens{text[next]}) != breakers.end();
        if (limit >= allowed && length >= allowed && !breaks) {
            int& most = longest.emplace(text[next], length).first->second;
            most = std::max(most, length);
        }
    }
    return longest;
}

SamplingParameters dry_alone() {
    SamplingParameters p = plain();
    p.order = {SamplingStep::kDry};
    p.dry_multiplier = 0.8f;
    return p;
}

std::map<int32_t, float> logits_after(Sampler& sampler, const std::vector<float>& logits) {
    sampler.sample(logits);
    std::map<int32_t, float> after;
    for (const Candidate& one : sampler.candidates()) after[one.token] = one.logit;
    return after;
}

TEST(Dry, PenalisesWhatWouldContinueARepetition) {
    // a b c c b c y a b c: after "a b c" came c, after "b c" came y, after "c" came b and c.
    const Tokens text = {0, 1, 2, 2, 1, 2, 3, 0, 1, 2};
    SamplingParameters p = dry_alone();
    p.dry_multiplier = 2.0f;
    p.dry_base = 1.5f;
    p.dry_allowed_length = 1;
    p.dry_sequence_breakers.clear();
    Sampler sampler(p, 5, {.context = 100});
    for (const int32_t token : text) sampler.accept(token);
    const auto after = logits_after(sampler, {1, 1, 1, 1, 1});
    EXPECT_FLOAT_EQ(after.at(0), 1.0f);
    EXPECT_FLOAT_EQ(after.at(1), 1.0f - 2.0f);                // c: 1
    EXPECT_FLOAT_EQ(after.at(2), 1.0f - 2.0f * 1.5f * 1.5f);  // a b c: 3
    EXPECT_FLOAT_EQ(after.at(3), 1.0f - 2.0f * 1.5f);         // b c: 2
    EXPECT_FLOAT_EQ(after.at(4), 1.0f);
}

TEST(Dry, AgreesWithTheDefinition) {
    std::mt19937_64 random(7);
    const std::vector<std::vector<Tokens>> sets = {
        {}, {{3}}, {{3}, {2}}, {{1, 2}, {3, 0, 0}}, {{0}, {0, 1, 2}, {0, 1}}, {{2, 2}, {2, 2, 2, 1}}};
    int found = 0;
    for (int round = 0; round < 600; ++round) {
        SamplingParameters p = dry_alone();
        p.dry_base = 1.0f + static_cast<float>(random() % 20) / 10.0f;
        p.dry_allowed_length = static_cast<int32_t>(random() % 4);
        p.dry_last_n = round % 3 == 0 ? -1 : static_cast<int32_t>(1 + random() % 40);
        const size_t context = 30;
        const size_t window = p.dry_last_n < 0 ? context : std::min<size_t>(context, p.dry_last_n);
        const std::vector<Tokens>& set = sets[random() % sets.size()];
        const auto vocabulary = static_cast<int32_t>(2 + random() % 3);
        Sampler sampler(p, 5, {context, breakers(set)});
        Tokens text;
        for (int i = 0; i < 70; ++i) {
            text.push_back(static_cast<int32_t>(random() % vocabulary));
            sampler.accept(text.back());
            if (random() % 4 != 0) continue;
            const std::vector<float> logits = random_logits(5, random());
            const auto expected = repetitions(text, set, window, p.dry_allowed_length);
            for (const auto& [token, logit] : logits_after(sampler, logits)) {
                const auto repeated = expected.find(token);
                double penalty = 0;
                if (repeated != expected.end()) {
                    penalty = 0.8f * std::pow(static_cast<double>(p.dry_base), repeated->second - p.dry_allowed_length);
                    ++found;
                }
                const double right = static_cast<double>(logits[static_cast<size_t>(token)]) - penalty;
                ASSERT_NEAR(logit, right, 1e-5 * std::max(1.0, std::abs(right)))
                    << "round " << round << " after " << text.size() << " token " << token;
            }
        }
    }
    EXPECT_GT(found, 5000);
}

TEST(Dry, WindowsThatMoveForgetWhatLeavesThem) {
    SamplingParameters p = dry_alone();
    p.dry_last_n = 4;
    p.dry_allowed_length = 1;
    p.dry_sequence_breakers.clear();
    Sampler sampler(p, 100, {.context = 1000});
    for (const int32_t token : {1, 2, 9, 8}) sampler.accept(token);
    sampler.accept(1);  // the window is 2 9 8 1: what followed the first 1 is still in it, 1 itself is not
    EXPECT_EQ(logits_after(sampler, std::vector<float>(100, 0.0f)).at(2), 0.0f);
    for (int i = 0; i < 1000; ++i) sampler.accept(10 + i % 5);
    // 11 12 13 14 holds no repetition.
    for (const auto& [token, logit] : logits_after(sampler, std::vector<float>(100, 0.0f)))
        EXPECT_EQ(logit, 0.0f) << token;
}

TEST(Dry, LongRepetitionsDoNotOverflow) {
    for (const float multiplier : {1e6f, -1e6f}) {
        SamplingParameters p = dry_alone();
        p.dry_multiplier = multiplier;
        p.dry_base = 1e6f;
        p.dry_last_n = -1;
        Sampler sampler(p, 3, {200, breakers({{2}})});
        for (int i = 0; i < 300; ++i) sampler.accept(0);
        EXPECT_EQ(sampler.sample(std::vector<float>{1, 0, 0.5f}) == 0, multiplier < 0);
        EXPECT_TRUE(std::isfinite(sampler.candidates()[0].logit));
    }
}

TEST(Dry, TakesTimeLinearInTheWindow) {
    // One token without end is the worst case of a search that is not linear: 2^17 tokens would take 10^10 steps.
    SamplingParameters p = dry_alone();
    p.dry_last_n = -1;
    constexpr size_t kContext = 1 << 17;
    Sampler sampler(p, 3, {kContext, breakers({{2}})});
    for (size_t i = 0; i < kContext; ++i) sampler.accept(static_cast<int32_t>(i % 7 == 0));
    for (int i = 0; i < 20; ++i) sampler.accept(sampler.sample(std::vector<float>{1, 0, 0.5f}));
}

TEST(Dry, OffMeansTheSameBits) {
    const std::vector<float> logits = random_logits(500, 3);
    SamplingParameters p;
    Sampler without(p, 500);
    for (const int variant : {0, 1, 2}) {
        SamplingParameters q = p;
        if (variant > 0) q.dry_multiplier = 1.0f;
        if (variant == 1) q.dry_last_n = 0;
        if (variant == 2) std::erase(q.order, SamplingStep::kDry);
        Sampler with(q, 500);
        without.reset();
        for (int i = 0; i < 100; ++i) {
            const int32_t token = with.sample(logits);
            ASSERT_EQ(token, without.sample(logits));
            with.accept(token);
            without.accept(token);
        }
    }
}

TEST(Dry, GreedyMasksAndResetHonourIt) {
    SamplingParameters p = dry_alone();
    p.temperature = 0.0f;
    p.dry_multiplier = 100.0f;
    p.dry_allowed_length = 1;
    p.dry_sequence_breakers.clear();
    Sampler sampler(p, 40, {.context = 50});
    std::vector<float> logits(40, 0.0f);
    logits[5] = 3.0f;
    logits[6] = 2.0f;
    for (const int32_t token : {4, 5, 4}) sampler.accept(token);
    EXPECT_EQ(sampler.sample(logits), 6);
    // 6 is not allowed, and of the others 5 is penalised.
    const std::vector<uint32_t> mask = {1u << 5 | 1u << 7, 0};
    EXPECT_EQ(sampler.sample(logits, mask), 7);
    const std::vector<uint32_t> only = {1u << 5};
    EXPECT_EQ(sampler.sample(logits, only), 5);
    sampler.reset();
    EXPECT_EQ(sampler.sample(logits), 5);
}

TEST(Dry, AsksForContextAndBreakersInTokens) {
    SamplingParameters p = dry_alone();
    EXPECT_THROW(Sampler(p, 5), Error);
    EXPECT_THROW(Sampler(p, 5, {.context = 10}), Error);
    EXPECT_NO_THROW(Sampler(p, 5, {10, breakers({})}));
    p.dry_sequence_breakers.clear();
    EXPECT_NO_THROW(Sampler(p, 5, {.context = 10}));
    EXPECT_THROW(Sampler(p, 5), Error);
}

TEST(Dry, FollowsPenaltiesInTheOrder) {
    // Penalties divide what DRY left, or the other way round.
    SamplingParameters p = dry_alone();
    p.dry_multiplier = 1.0f;
    p.dry_allowed_length = 1;
    p.dry_sequence_breakers.clear();
    p.repetition_penalty = 2.0f;
    const auto logit_of_1 = [&](std::string_view order) {
        p.order = parse_sampling_order(order);
        Sampler sampler(p, 3, {.context = 50});
        for (const int32_t token : {0, 1, 0}) sampler.accept(token);
        return logits_after(sampler, {0, 8, 0}).at(1);
    };
    EXPECT_FLOAT_EQ(logit_of_1("penalties;dry"), 8.0f / 2 - 1);
    EXPECT_FLOAT_EQ(logit_of_1("dry;penalties"), (8.0f - 1) / 2);
    EXPECT_FLOAT_EQ(logit_of_1("top_k;dry;min_p;penalties"), (8.0f - 1) / 2);
}

}  // namespace
}  // namespace tessera::session
