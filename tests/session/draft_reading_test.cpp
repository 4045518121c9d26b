// What a draft model reads of texts: who pays for it, and what it drafts where it has left out some.
#include "core/session/drafts/draft_control.hpp"
#include "core/session/drafts/model_drafts.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace tessera::session {
namespace {

// Times in steps of the model with one row; shares of drafted tokens that are accepted.
struct Simulated {
    double read = 1.0 / 80, asked = 0.1;  // a token that the draft model reads or drafts
    double of_part = 0, of_whole = 0;
    double prompt_token = 0.1;
    uint32_t prompt = 200;
};

constexpr double kRow = 0.1;  // another row of a step
constexpr uint32_t kMost = 7, kCall = 512;

struct Result {
    double with = 0, without = 0;  // with the prompt
    double reading = 0;
    uint32_t tokens_read = 0, steps = 0, accepted = 0;
    double gained_before_whole = 0;  // when the first tokens beyond a part were read
    bool whole = false;              // has been read
    double gain() const { return without / with; }
};

// As Drafting does it, of one request.
Result run(DraftControl& control, const Simulated& machine, uint32_t tokens, uint32_t seed) {
    constexpr uint32_t kHead = ModelDrafts::kHead;
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> share(0, 1);
    DraftAcceptance own{DraftControl::kMemory};
    Result result;
    result.with = result.without = machine.prompt * machine.prompt_token;
    DraftControl::prompt(own, result.with);
    uint32_t covered = 0, left_out = 0;  // of the text
    for (uint32_t done = 1; done < tokens; ++result.steps) {
        const uint32_t size = machine.prompt + done, most = control.worth_asking(own, 1, kMost);
        const DraftUnread unread{size - (left_out ? kHead : covered), size - covered};
        const uint32_t may_read = most > 0 ? control.may_read(own, unread) : 0;
        uint32_t drafted = 0;
        if (may_read > 0) {
            const bool whole = unread.whole <= may_read;
            if (whole && left_out) covered = std::exchange(left_out, 0) ? kHead : covered;
            if (!whole && unread.rest > may_read) {
                EXPECT_GE(may_read, DraftControl::kShortestPart);
                left_out = size - may_read;
                covered = left_out;
            }
            const uint32_t count = std::min(size - covered, kCall);
            covered += count;
            const bool reads = may_read > DraftControl::kReadAtOnce;
            if (covered == size) drafted = reads ? 1 : most;
            const double seconds = count * machine.read + (reads ? 0 : drafted * machine.asked);
            if (reads) {
                if (count > DraftControl::kLongestPart && result.gained_before_whole == 0)
                    result.gained_before_whole = std::max(1e-9, result.without - result.with);
                control.read(own, may_read, count, seconds);
                result.reading += seconds;
                result.tokens_read += count;
            } else {
                const bool first = !control.knows_asking();
                control.asked(drafted, seconds);
                if (!first) own.earn(-seconds);
            }
            result.whole = result.whole || (whole && covered == size);
            result.with += seconds;
        }
        const std::vector<DraftToken> foreseen(drafted, {0, kMatchKinds + 3});
        DraftChoice choice{&own, foreseen, kMost};
        control.choose({&choice, 1}, 1, kMost, false);
        uint32_t right = 0;
        while (right < drafted && share(random) < (left_out ? machine.of_part : machine.of_whole)) ++right;
        for (uint32_t i = 0; i < std::min(right + 1, drafted) && i <= choice.chosen; ++i)
            control.observe(own, kMatchKinds + 3, i < right);
        const uint32_t verified = std::min(right, choice.chosen);
        const double seconds = 1 + kRow * choice.chosen;
        control.accepted(own, verified);
        control.finished(1, choice.chosen, verified, seconds);
        result.with += seconds;
        result.without += 1 + verified;
        result.accepted += verified;
        done += 1 + verified;
        // Of rejected tokens nothing stays; of those that were drafted before, no more than was right.
        covered = std::min(covered, machine.prompt + done);
    }
    return result;
}

DraftControl fresh() {
    return DraftControl({1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7});
}

TEST(DraftReading, CostsTheFirstRequestLittleWhereDraftsFail) {
    for (const uint32_t prompt : {20u, 128u, 1000u, 6000u}) {
        for (const uint32_t tokens : {10u, 48u, 128u, 1000u}) {
            for (const double read : {0.002, 1.0 / 80, 1.0 / 50}) {
                for (const double asked : {0.02, 0.1, 0.3}) {
                    DraftControl control = fresh();
                    const Result found = run(control, {read, asked, 0, 0, 0.1, prompt}, tokens, 1);
                    EXPECT_GE(found.gain(), 0.97)
                        << "a prompt of " << prompt << ", an answer of " << tokens << ", a token read in " << read
                        << ", drafted in " << asked << ": " << found.tokens_read << " read";
                    EXPECT_FALSE(found.whole && prompt > 1000);
                }
            }
        }
    }
}

TEST(DraftReading, CostsEachOfManyRequestsLittleWhereDraftsFail) {
    for (const uint32_t prompt : {60u, 500u, 4000u}) {
        DraftControl control = fresh();
        Result all;
        for (uint32_t request = 0; request < 60; ++request) {
            const Result found = run(control, {1.0 / 80, 0.1, 0, 0, 0.1, prompt}, 60, request);
            EXPECT_GE(found.gain(), 0.97) << request;
            all.with += found.with;
            all.without += found.without;
            all.reading += found.reading;
        }
        EXPECT_GE(all.gain(), 0.975);
        EXPECT_LE(all.reading, DraftControl::kReadingShare * all.with);
    }
}

TEST(DraftReading, OfTheWholeIsPaidForByGains) {
    // The whole takes 40 steps.
    const Simulated good{1.0 / 50, 0.05, 0.6, 0.9, 0.1, 2000};
    DraftControl control = fresh();
    const Result first = run(control, good, 800, 1);
    EXPECT_TRUE(first.whole) << "in the first request";
    EXPECT_GE(first.gained_before_whole, 0.75 * 2000 / 50) << "not before";
    EXPECT_GE(first.gain(), 1.3);
    // One whose part fails is not read further.
    DraftControl other = fresh();
    const Result failing = run(other, {1.0 / 50, 0.05, 0, 0.9, 0.1, 2000}, 800, 1);
    EXPECT_FALSE(failing.whole);
    EXPECT_GT(failing.tokens_read, 0u);
    EXPECT_GE(failing.gain(), 0.97);
}

// Behind a good request the whole of a text that takes no longer than drafts may lose is read at once; after some for
// nothing no more.
TEST(DraftReading, OfAllRequestsIsPaidForByWhatTheyGained) {
    DraftControl control = fresh();
    const Simulated good{1.0 / 80, 0.05, 0.8, 0.8, 0.1, 400};
    (void)run(control, good, 600, 1);
    EXPECT_TRUE(run(control, good, 40, 2).whole);
    double lost = 0;
    for (uint32_t request = 0; request < 20; ++request) {
        const Result bad = run(control, {1.0 / 80, 0.05, 0, 0, 0.1, 400}, 40, request);
        lost += bad.with - bad.without;
    }
    // What was gained before, once, and shares of the time.
    EXPECT_LE(lost, DraftControl::kMostCredit + 20 * 0.03 * 80);
    EXPECT_FALSE(run(control, {1.0 / 80, 0.05, 0, 0, 0.1, 400}, 40, 99).whole);
}

TEST(DraftReading, OfAFewTokensIsPartOfAsking) {
    DraftControl control = fresh();
    control.finished(1, 0, 0, 1);
    DraftAcceptance own{DraftControl::kMemory};
    EXPECT_EQ(control.may_read(own, {}), DraftControl::kReadAtOnce);
    EXPECT_EQ(control.may_read(own, {16, 16}), DraftControl::kReadAtOnce);
    EXPECT_EQ(control.may_read(own, {900, 16}), DraftControl::kReadAtOnce) << "behind what has been left out";
    EXPECT_EQ(control.may_read(own, {17, 17}), 0u) << "nothing pays for it";
    EXPECT_EQ(control.may_read(own, {900, 900}), 0u);
    // A prompt of 50 steps: half a step for reading, which is 32 tokens before it is known.
    DraftControl::prompt(own, 50.01);
    EXPECT_EQ(control.may_read(own, {900, 900}), 32u);
    control.read(own, 32, 32, 0.1);
    EXPECT_NEAR(own.reading(), 0.4, 1e-3);
    // Then it is: 128 tokens more.
    EXPECT_NEAR(control.may_read(own, {900, 900}), 128, 1);
    control.read(own, 128, 0, 0);
    EXPECT_NEAR(own.reading(), 0.4, 1e-2) << "there was no room for it";
    own.earn(3);
    EXPECT_EQ(control.may_read(own, {900, 16}), 900u);
    control.read(own, 900, 512, 512 * 0.1 / 32);
    EXPECT_EQ(control.may_read(own, {390, 390}), 390u) << "it has been paid for";
    control.read(own, 390, 390, 390 * 0.1 / 32);
    EXPECT_EQ(control.may_read(own, {3, 3}), DraftControl::kReadAtOnce);
    EXPECT_NEAR(control.may_read(own, {900, 900}), 127, 1) << "what has been gained is spent";
}

class TextsWithGaps : public testing::Test {
  protected:
    static constexpr uint32_t kTokens = 270;

    void load(const char* file, uint32_t context = 2048) {
        EngineOptions options;
        options.context = context;
        options.rows = 512;
        options.sequences = 2;
        drafts_.reset();
        loaded_ = std::make_unique<test::LoadedModel>(file, options, test::plugins_without({}));
        plain_ = std::make_unique<test::LoadedModel>(file, options, test::plugins_without({}));
        drafts_ = std::make_unique<ModelDrafts>(std::move(loaded_->engine), kTokens, 0);
    }
    void SetUp() override { load(TSR_TEST_MODEL); }
    void TearDown() override { drafts_.reset(); }

    static std::vector<Token> some(size_t count, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<Token> tokens(count);
        for (Token& token : tokens) token = static_cast<Token>(4 + random() % 266);
        return tokens;
    }
    static DraftWish wish(RequestId id, std::span<const Token> tokens, uint32_t may_read = UINT32_MAX) {
        DraftWish made{id, tokens, 3, {}};
        made.may_read = may_read;
        return made;
    }
    DraftWish ask(RequestId id, std::span<const Token> tokens, uint32_t may_read = UINT32_MAX) {
        DraftWish asked = wish(id, tokens, may_read);
        drafts_->propose({&asked, 1});
        return asked;
    }
    // The same of a model that is given those tokens and nothing else.
    std::vector<Token> follows(std::vector<Token> tokens) {
        Engine& engine = *plain_->engine;
        const SequenceId sequence = engine.cache().create();
        std::vector<Token> found;
        auto logits = engine.prefill(sequence, tokens).first(kTokens);
        for (;;) {
            found.push_back(static_cast<Token>(std::ranges::max_element(logits) - logits.begin()));
            if (found.size() == 3) break;
            const BatchEntry entry{sequence, {&found.back(), 1}};
            logits = engine.step({&entry, 1}).front().first(kTokens);
        }
        engine.cache().remove(sequence);
        return found;
    }
    static std::vector<Token> drafted(const DraftWish& wish) {
        std::vector<Token> tokens;
        for (const DraftToken& one : wish.draft) tokens.push_back(one.token);
        return tokens;
    }
    // The first and the last ones.
    static std::vector<Token> ends(std::span<const Token> text, size_t head, size_t tail) {
        std::vector<Token> tokens(text.begin(), text.begin() + static_cast<ptrdiff_t>(head));
        tokens.insert(tokens.end(), text.end() - static_cast<ptrdiff_t>(tail), text.end());
        return tokens;
    }
    void expect_unread(RequestId id, std::span<const Token> tokens, uint32_t whole, uint32_t rest) {
        const DraftUnread unread = drafts_->unread(wish(id, tokens));
        EXPECT_EQ(unread.whole, whole);
        EXPECT_EQ(unread.rest, rest);
    }

    std::unique_ptr<test::LoadedModel> loaded_, plain_;
    std::unique_ptr<ModelDrafts> drafts_;
};

TEST_F(TextsWithGaps, GoOnFromTheirFirstAndLastTokens) {
    const std::vector<Token> all = some(400, 1);
    const auto text = [&](size_t size) { return std::span(all).first(size); };
    expect_unread(1, text(200), 200, 200);
    DraftWish part = ask(1, text(200), 32);
    EXPECT_EQ(part.read, 32u);
    EXPECT_EQ(drafted(part), follows(ends(text(200), 4, 28)));
    // What is drafted is dropped again; what comes is read behind it.
    expect_unread(1, text(203), 199, 3);
    part = ask(1, text(203), 16);
    EXPECT_EQ(part.read, 3u);
    EXPECT_EQ(drafted(part), follows(ends(text(203), 4, 31)));
    // Too much has come: another gap.
    expect_unread(1, text(240), 236, 37);
    part = ask(1, text(240), 32);
    EXPECT_EQ(part.read, 32u);
    EXPECT_EQ(drafted(part), follows(ends(text(240), 4, 32)));
    // The whole, of which the first tokens are there.
    expect_unread(1, text(241), 237, 1);
    part = ask(1, text(241));
    EXPECT_EQ(part.read, 237u);
    EXPECT_EQ(drafted(part), follows({text(241).begin(), text(241).end()}));
    // Where so many are missing again, they are left out behind all that was read.
    expect_unread(1, text(300), 59, 59);
    part = ask(1, text(300), 32);
    EXPECT_EQ(part.read, 32u);
    EXPECT_EQ(drafted(part), follows(ends(text(300), 241, 32)));
    expect_unread(1, text(301), 60, 1);
    EXPECT_EQ(ask(1, text(301), 60).read, 60u);
    expect_unread(1, text(302), 1, 1);
}

TEST_F(TextsWithGaps, AreNoBeginningsOfOthers) {
    const std::vector<Token> text = some(300, 2);
    std::vector<Token> other = text;  // the same but for what was left out
    other[150] = other[150] == 9 ? 10 : 9;
    ASSERT_EQ(ask(1, text, 32).read, 32u);
    expect_unread(2, text, 300, 300);
    expect_unread(2, other, 300, 300);
    EXPECT_EQ(drafted(ask(2, other)), follows(other));
    drafts_->forget(2);
    drafts_->forget(1);
    expect_unread(3, text, 150, 150);
    DraftWish third = ask(3, text);
    EXPECT_EQ(third.read, 150u);
    EXPECT_EQ(drafted(third), follows(text));
    drafts_->forget(3);
    // Where tokens repeat, those behind a gap may be one.
    std::vector<Token> same;
    while (same.size() < 200) same.push_back(static_cast<Token>(40 + 3 * (same.size() % 8)));
    EXPECT_EQ(ask(7, same, 32).read, 32u);
    const uint32_t left = drafts_->unread(wish(8, same)).whole;
    EXPECT_LE(left, 168u);
    const DraftWish eighth = ask(8, same);
    EXPECT_EQ(eighth.read, left);
    EXPECT_EQ(drafted(eighth), follows(same));
    drafts_->forget(7);
    drafts_->forget(8);
    // What is before the gap is one: of a request that runs, and of one that has ended.
    const std::vector<Token> first = some(260, 4);
    const auto begins = std::span(first).first(100);
    EXPECT_EQ(ask(4, begins).read, 100u);
    EXPECT_EQ(ask(4, first, 32).read, 32u);
    std::vector<Token> fifth(first.begin(), first.end());
    fifth[180] = fifth[180] == 9 ? 10 : 9;
    for (const RequestId id : {RequestId{5}, RequestId{6}}) {
        expect_unread(id, fifth, 160, 160);
        const DraftWish found = ask(id, fifth, 160);
        EXPECT_EQ(found.read, 160u);
        EXPECT_EQ(drafted(found), follows(fifth));
        drafts_->forget(id);
        if (id == 6) continue;
        // Again behind a gap, so that what is known of the fifth text is dropped for others.
        load(TSR_TEST_MODEL);
        EXPECT_EQ(ask(4, begins).read, 100u);
        EXPECT_EQ(ask(4, first, 32).read, 32u);
        drafts_->forget(4);
    }
}

// Wherever a window ends.
TEST_F(TextsWithGaps, OfLayersWithAWindow) {
    load(TSR_GOLDENS "/qwen3-window.gguf", 1024);
    const std::vector<Token> all = some(420, 3);
    for (uint32_t size = 60, step = 1; size < 400; size += step, step = step % 37 + 5) {
        const auto text = std::span(all).first(size);
        const DraftUnread unread = drafts_->unread(wish(1, text));
        ASSERT_LE(unread.rest, unread.whole);
        const uint32_t may_read = step % 3 == 0 ? UINT32_MAX : 16 + step;
        const DraftWish found = ask(1, text, may_read);
        EXPECT_EQ(found.draft.size(), 3u) << size;
        if (may_read == UINT32_MAX) {
            EXPECT_EQ(drafted(found), follows({text.begin(), text.end()})) << size;
        }
        if (step % 4 == 0) drafts_->forget(1);
    }
}

TEST_F(TextsWithGaps, OfWhichNothingCanBeDraftedHaveNothingToRead) {
    load(TSR_TEST_MODEL, 128);
    const std::vector<Token> text = some(400, 1);
    expect_unread(1, text, 0, 0);
    EXPECT_EQ(ask(1, text, 32).read, 0u);
    // Two whose parts take all pages, so that a third finds no room in the same call.
    const std::vector<Token> second = some(100, 2), third = some(90, 3);
    std::vector<DraftWish> wishes = {wish(2, second, 80), wish(3, third, 70)};
    drafts_->propose(wishes);
    EXPECT_EQ(wishes[0].read, 80u);
    EXPECT_EQ(wishes[1].read, 0u);
    EXPECT_TRUE(wishes[1].draft.empty());
    expect_unread(3, third, 90, 90);
    expect_unread(4, third, 90, 90);
    EXPECT_EQ(ask(3, third, 16).draft.size(), 3u) << "the other's room";
    std::vector<Token> unknown = some(20, 1);
    unknown[3] = kTokens;
    expect_unread(1, unknown, 0, 0);
    expect_unread(1, {}, 0, 0);
}

}  // namespace
}  // namespace tessera::session
