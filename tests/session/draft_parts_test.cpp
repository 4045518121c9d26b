// Where texts repeat, and how long drafts are.
#include "core/session/drafts/draft_control.hpp"
#include "core/session/drafts/ngram_drafts.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tessera::session {
namespace {

// The longest match of at least two tokens, or of the expected position; of those the last.
std::optional<NgramIndex::Match> searched(std::span<const Token> tokens, std::optional<size_t> expected) {
    const auto length_at = [&](size_t position) {
        uint32_t length = 0;
        while (length < std::min<size_t>(position, NgramIndex::kLongestMatch) &&
               tokens[position - 1 - length] == tokens[tokens.size() - 1 - length])
            ++length;
        return length;
    };
    NgramIndex::Match best{0, 0};
    if (expected) best = {*expected, length_at(*expected)};
    for (size_t position = tokens.size() - 1; position >= 2; --position) {
        const uint32_t length = length_at(position);
        if (length >= 2 && length > best.length) best = {position, length};
    }
    return best.length ? std::optional(best) : std::nullopt;
}

TEST(NgramIndex, FindsTheLongestMatchAndOfThoseTheLast) {
    std::mt19937 random(1);
    for (const uint32_t kinds : {30u, 5u}) {
        NgramIndex index;
        std::vector<Token> text;
        uint32_t found = 0;
        while (text.size() < 900) {
            // Now and then a part of what was before.
            if (random() % 9 == 0 && text.size() > 40) {
                const size_t from = random() % (text.size() - 20);
                const std::vector<Token> part(text.begin() + static_cast<long>(from),
                                              text.begin() + static_cast<long>(from + 3 + random() % 15));
                text.insert(text.end(), part.begin(), part.end());
            }
            text.push_back(static_cast<Token>(random() % kinds));
            std::optional<size_t> expected;
            if (text.size() > 4 && random() % 3 == 0) expected = 1 + random() % (text.size() - 1);
            const auto match = index.find(text, expected);
            // Of few kinds there are more candidates than are tried.
            if (kinds < 10) {
                EXPECT_LT(match ? match->next : 0, text.size());
                continue;
            }
            const auto wanted = searched(text, expected);
            ASSERT_EQ(match.has_value(), wanted.has_value()) << text.size();
            if (!match) continue;
            ++found;
            EXPECT_EQ(match->length, wanted->length) << text.size();
            EXPECT_EQ(match->next, wanted->next) << text.size();
        }
        EXPECT_TRUE(kinds < 10 || found > 100) << found;
    }
}

TEST(NgramIndex, OfOneToken) {
    NgramIndex index;
    std::vector<Token> text;
    EXPECT_FALSE(index.find(text, {}));
    text = {7};
    EXPECT_FALSE(index.find(text, {}));
    text = {7, 7, 7, 7};
    const auto match = index.find(text, {});
    ASSERT_TRUE(match);
    EXPECT_EQ(match->next, 3u);
    EXPECT_EQ(match->length, 3u);
}

std::vector<Token> drafted(DraftSource& source, const std::vector<Token>& tokens, uint32_t most, RequestId id = 1) {
    DraftWish wish{id, tokens, most, {}};
    source.propose({&wish, 1});
    std::vector<Token> draft;
    for (const DraftToken& one : wish.draft) draft.push_back(one.token);
    return draft;
}

TEST(NgramDrafts, GoOnAsTheTextDidAndRepeat) {
    NgramDrafts drafts;
    EXPECT_EQ(drafted(drafts, {1, 2, 3, 4, 5, 9, 2, 3}, 3), (std::vector<Token>{4, 5, 9}));
    EXPECT_TRUE(drafted(drafts, {1, 2, 3, 4, 5, 9, 2, 3}, 0).empty());
    // Another text, which repeats to its end and beyond.
    EXPECT_EQ(drafted(drafts, {8, 6, 7, 6, 7}, 5, 2), (std::vector<Token>{6, 7, 6, 7, 6}));
    EXPECT_EQ(drafted(drafts, {1, 2, 3, 4}, 5, 3), std::vector<Token>());
    // Behind a token that is another one, it is the same again.
    EXPECT_EQ(drafted(drafts, {10, 11, 12, 13, 14, 15, 16, 50, 10, 11}, 2, 4), (std::vector<Token>{12, 13}));
    EXPECT_EQ(drafted(drafts, {10, 11, 12, 13, 14, 15, 16, 50, 10, 11, 99, 13}, 2, 4), (std::vector<Token>{14, 15}));
    drafts.forget(4);
    EXPECT_EQ(drafted(drafts, {10, 11, 12, 13, 14, 15, 16, 50, 10, 11, 99, 13}, 2, 4), std::vector<Token>());
}

// A machine whose steps take so long, and an answer of which each token is foreseen with a probability.
struct Simulated {
    std::vector<double> seconds;  // by rows - 1
    double noise = 0;
    double slow_start = 1;  // factor of the first steps
    uint32_t slow = 4;      // tokens that these give
    uint32_t begin = 0;     // tokens before the first draft
    uint32_t most = 7;

    struct Result {
        double with = 0, without = 0, drafted = 0;
        uint32_t steps = 0, undrafted = 0;
        double gain() const { return without / with; }
    };
    // `accepted`: of the token of each position. `kind`: as the source has them.
    template <typename Accepted>
    Result run(DraftControl& control, uint32_t tokens, uint8_t kind, const Accepted& accepted, uint32_t seed) const {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> share(0, 1);
        std::lognormal_distribution<double> factor(0, noise);
        DraftAcceptance own{DraftControl::kMemory};
        Result result;
        for (uint32_t done = 0; done < tokens;) {
            std::vector<DraftToken> foreseen(done < begin ? 0 : most, {0, kind});
            DraftChoice choice{&own, foreseen, most};
            control.choose({&choice, 1}, 1, most, false);
            uint32_t taken = 0;
            bool hit = true;
            for (; hit && taken < foreseen.size(); ++taken) {
                hit = share(random) < accepted(done + taken);
                if (taken <= choice.chosen) control.observe(own, kind, hit);
                if (!hit || taken == choice.chosen) break;
            }
            const uint32_t verified = std::min(taken, choice.chosen);
            const double now = factor(random) * (done < slow ? slow_start : 1), step = seconds[choice.chosen] * now;
            control.accepted(own, verified);
            control.finished(1, choice.chosen, verified, step);
            result.with += step;
            result.without += seconds[0] * now * (1 + verified);
            result.drafted += choice.chosen;
            ++result.steps;
            result.undrafted += choice.chosen == 0 ? 1 : 0;
            done += 1 + verified;
        }
        return result;
    }
    // The best of all fixed lengths.
    double bound(double share) const {
        double best = 1;
        for (uint32_t length = 1; length <= most; ++length) {
            double tokens = 0;
            for (uint32_t i = 0; i <= length; ++i) tokens += std::pow(share, i);
            best = std::max(best, tokens * seconds[0] / seconds[length]);
        }
        return best;
    }
};

// By rows 1 to 8: bytes bound a dense model's steps, experts that other rows need those of a model of many, and
// arithmetic those of slow processors.
const std::vector<std::vector<double>> kMachines = {
    {1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.15},
    {1, 1.45, 1.8, 2.1, 2.4, 2.7, 2.9, 3.1},
    {1, 1.9, 2.8, 3.7, 4.1, 4.5, 4.9, 5.3},
    {1, 1.1, 1.3, 1.5, 2.5, 2.6, 2.7, 2.8},
};

TEST(DraftControl, ReachesWhatEachShareOfAcceptedTokensAllows) {
    for (const auto& seconds : kMachines) {
        const Simulated machine{seconds, 0.1};
        for (const double share : {0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.97}) {
            // What is predicted is another machine's.
            DraftControl control({1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4});
            const auto found = machine.run(
                control, 3000, 4, [&](uint32_t) { return share; }, 7);
            EXPECT_GE(found.gain(), 0.85 * machine.bound(share))
                << share << " accepted, two rows in " << seconds[1] << ", " << found.drafted << " drafted";
            EXPECT_GE(found.gain(), 0.97) << share << " accepted, two rows in " << seconds[1];
        }
    }
}

TEST(DraftControl, LosesNoMoreThanItsShareWhateverComes) {
    for (const auto& seconds : kMachines) {
        for (const uint32_t period : {3u, 20u, 100u}) {
            for (uint32_t seed = 0; seed < 6; ++seed) {
                const Simulated machine{seconds, seed % 2 ? 0.2 : 0.0};
                DraftControl control({1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0});
                // What was right turns wrong.
                const auto accepted = [&](uint32_t at) { return at / period % 2 ? 0.0 : 0.9; };
                const auto found = machine.run(control, 600, static_cast<uint8_t>(seed % kMatchKinds), accepted, seed);
                EXPECT_GE(found.gain(), 0.97) << "in turns of " << period << ", two rows in " << seconds[1];
            }
        }
    }
}

// Steps without drafts seem to take longer than they do: what is learned of them at first is wrong.
TEST(DraftControl, LearnsWhatStepsWithoutDraftsTake) {
    for (const auto& seconds : kMachines) {
        Simulated machine{seconds, 0.1};
        machine.slow_start = 1.5;
        for (const uint32_t seed : {1u, 2u, 3u}) {
            DraftControl control({1, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0});
            EXPECT_GE(machine
                          .run(
                              control, 300, 4, [](uint32_t) { return 0.0; }, seed)
                          .gain(),
                      0.965);
            DraftControl other({1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4});
            const double gain = machine
                                    .run(
                                        other, 600, 4, [](uint32_t) { return 0.9; }, seed)
                                    .gain();
            // Where a draft's token takes nearly a step, one that failed is made up for slowly.
            EXPECT_GE(gain, seconds[1] > 1.5 ? 0.97 : 0.6 * machine.bound(0.9)) << "two rows in " << seconds[1];
        }
    }
}

// Steps that other work slows come before those with drafts, which seem to gain.
TEST(DraftControl, LosesLittleWhereTheMachineWasDisturbed) {
    for (const auto& seconds : kMachines) {
        for (const double factor : {1.3, 2.0, 4.0}) {
            for (const uint32_t slow : {8u, 16u, 30u}) {
                for (const uint32_t seed : {1u, 2u, 3u}) {
                    Simulated machine{seconds, 0.05};
                    machine.slow_start = factor;
                    machine.slow = machine.begin = slow;
                    DraftControl control({1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4});
                    const auto found = machine.run(
                        control, 80, 4, [](uint32_t) { return 0.0; }, seed);
                    // A row that takes as much as the disturbance is found out by the next step without drafts.
                    const double least = factor == 2.0 && seconds[1] > 1.5 ? 0.92 : 0.97;
                    EXPECT_GE(found.gain(), least) << slow << " tokens slower by " << factor << ", two rows in "
                                                   << seconds[1] << ", " << found.drafted << " drafted";
                }
            }
        }
    }
}

// Where rows cost little, a new number of them tells nothing new of the others.
TEST(DraftControl, KeepsWhatItKnowsWhereRowsCostLittle) {
    for (const double noise : {0.0, 0.01, 0.03}) {
        Simulated machine;
        machine.noise = noise;
        machine.most = 15;
        for (uint32_t rows = 0; rows <= machine.most; ++rows) machine.seconds.push_back(1 + 0.01 * rows);
        for (const uint32_t seed : {1u, 2u, 3u}) {
            DraftControl control(std::vector<double>(16, 1.0));
            const auto found = machine.run(
                control, 6000, 4, [](uint32_t) { return 0.8; }, seed);
            EXPECT_LE(found.undrafted, 0.05 * found.steps) << "of " << found.steps << ", noise " << noise;
            EXPECT_GE(found.gain(), 0.9 * machine.bound(0.8)) << "noise " << noise;
        }
    }
    // A number of rows that was measured often, and one more that takes less, as the first of its kind may.
    DraftStepTimes times(std::vector<double>(8, 1.0));
    for (int i = 0; i < 100; ++i) {
        times.measured(1, 1);
        times.measured(2, 1.02);
    }
    (void)times.take_doubt();
    times.measured(3, 1.03);
    EXPECT_FALSE(times.take_doubt());
    EXPECT_NEAR(times.seconds(2), 1.02, 1e-6);
    times.measured(4, 0.85);
    EXPECT_TRUE(times.take_doubt()) << "other work has slowed the others";
}

// What a step without drafts makes doubtful it has measured itself.
TEST(DraftControl, MeasuresWhatIsDoubtfulOnce) {
    DraftControl control({1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7});
    DraftAcceptance own{DraftControl::kMemory};
    const std::vector<DraftToken> foreseen(2, {5, 4});
    const auto drafts = [&] {
        DraftChoice choice{&own, foreseen, 2};
        control.choose({&choice, 1}, 1, 2, false);
        return choice.chosen;
    };
    for (int i = 0; i < 60; ++i) {
        control.observe(own, 4, true);
        control.finished(1, i % 10 ? 2u : 0u, i % 10 ? 2u : 0u, i % 10 ? 1.2 : 1.0);
        own.earn(1);
    }
    control.finished(1, 0, 0, 1.0);
    control.finished(1, 2, 2, 1.2);
    ASSERT_GT(drafts(), 0u);
    // Two requests without drafts: steps of one seem to have been slow.
    control.finished(2, 0, 0, 0.6);
    control.finished(1, 1, 1, 1.1);
    EXPECT_GT(drafts(), 0u);
}

// Many short answers, of which none was foreseen.
TEST(DraftControl, LearnsFromAllRequests) {
    const Simulated machine{kMachines[1], 0.1};
    DraftControl control({1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4});
    Simulated::Result all;
    for (uint32_t request = 0; request < 60; ++request) {
        const auto found = machine.run(
            control, 20, 4, [](uint32_t) { return 0.0; }, request);
        all.with += found.with;
        all.without += found.without;
        all.drafted += found.drafted;
    }
    EXPECT_GE(all.gain(), 0.97);
    EXPECT_LT(all.drafted, 40);
}

// Behind answers of which all was right come some of which nothing is: each of them may lose no more than long ones do.
TEST(DraftControl, ShortAnswersLoseLittleWhateverWasBefore) {
    for (const auto& seconds : kMachines) {
        for (const uint32_t tokens : {10u, 20u, 40u}) {
            const Simulated machine{seconds, 0.05};
            DraftControl control({1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4});
            Simulated::Result right, wrong;
            for (uint32_t request = 0; request < 400; ++request) {
                const bool good = request % 8 != 7;
                const auto found = machine.run(
                    control, good ? 60 : tokens, 4, [&](uint32_t) { return good ? 0.95 : 0.0; }, request);
                Simulated::Result& sum = good ? right : wrong;
                sum.with += found.with;
                sum.without += found.without;
            }
            EXPECT_GE(wrong.gain(), 0.97) << tokens << " tokens, two rows in " << seconds[1];
            EXPECT_GE(right.gain(), seconds[1] > 1.5 ? 0.98 : 0.8 * machine.bound(0.95))
                << "two rows in " << seconds[1];
        }
    }
}

TEST(DraftControl, SharesRowsAmongRequestsByProbability) {
    DraftControl control({1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06, 1.07, 1.08, 1.09});
    for (int i = 0; i < 40; ++i) control.finished(2, 0, 0, 1.02);
    for (const uint32_t drafts : {1u, 2u, 4u}) control.finished(2, drafts, drafts, 1.02 + 0.01 * drafts);
    control.finished(2, 0, 0, 1.02);
    DraftAcceptance good{DraftControl::kMemory}, bad{DraftControl::kMemory};
    for (int i = 0; i < 30; ++i) {
        good.observe(3, true);
        bad.observe(3, false);
    }
    const std::vector<DraftToken> foreseen(6, {5, 3});
    std::vector<DraftChoice> choices = {{&bad, foreseen, 6}, {&good, foreseen, 6}};
    control.choose(choices, 2, 5, false);
    EXPECT_GE(choices[1].chosen, 4u);
    EXPECT_LE(choices[0].chosen, 1u);
    EXPECT_LE(choices[0].chosen + choices[1].chosen, 5u);
    choices[1].most = 2;
    choices[0].least = 3;
    control.choose(choices, 2, 5, false);
    EXPECT_EQ(choices[1].chosen, 2u);
    EXPECT_EQ(choices[0].chosen, 0u) << "fewer than its request wants";
    // Beside a prompt what is likely is taken, whatever steps take.
    DraftControl fresh({1});
    choices[1].most = 6;
    fresh.choose(choices, 2, 4, true);
    EXPECT_EQ(choices[1].chosen, 4u);
    fresh.choose(choices, 2, 4, false);
    EXPECT_EQ(choices[1].chosen, 0u) << "nothing is known of steps";
}

TEST(DraftControl, AsksACostlySourceWhileItIsWorthIt) {
    DraftControl control({1, 1.02, 1.04, 1.06, 1.08, 1.1, 1.12, 1.14});
    DraftAcceptance own{DraftControl::kMemory};
    EXPECT_EQ(control.worth_asking(own, 1, 7), 0u) << "before any step";
    for (int i = 0; i < 10; ++i) control.finished(1, 0, 0, 1);
    for (const uint32_t drafts : {1u, 2u, 4u, 7u}) control.finished(1, drafts, drafts, 1 + 0.02 * drafts);
    EXPECT_EQ(control.worth_asking(own, 1, 3), 0u) << "its row could not be paid";
    own.earn(5);
    EXPECT_EQ(control.worth_asking(own, 1, 3), 1u) << "what a token takes is not known";
    control.asked(1, 0.001);
    EXPECT_EQ(control.worth_asking(own, 1, 3), 3u);
    // A token that takes half a step, of a request that has gained some.
    for (int i = 0; i < 60; ++i) {
        control.asked(2, 1.0);
        control.finished(1, 2, 2, 1.04);
    }
    const uint32_t some = control.worth_asking(own, 1, 7);
    EXPECT_GE(some, 1u);
    EXPECT_LE(some, 2u);
    DraftAcceptance fresh{DraftControl::kMemory};
    EXPECT_EQ(control.worth_asking(fresh, 1, 7), 0u) << "its answer may be short";
    for (int i = 0; i < 400; ++i) control.observe(own, kMatchKinds + 2, false);
    uint32_t asked = 0;
    for (int i = 0; i < 640; ++i) {
        asked += control.worth_asking(own, 1, 7);
        control.finished(1, 0, 0, 1);
    }
    EXPECT_LE(asked, 10u);
    EXPECT_GE(asked, 2u) << "now and then it is tried again";
}

}  // namespace
}  // namespace tessera::session
