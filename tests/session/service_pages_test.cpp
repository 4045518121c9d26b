// Answers whose prompts are in the cache already, and that compute them again.
#include "core/base/error.hpp"
#include "tests/session/service_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace tessera::session {
namespace {

// A cache of five pages and prompts of more than three.
class RepeatedPrompt : public ServiceTest {
  protected:
    struct Found : Result {
        std::vector<TokenProbabilities> scores;
    };

    void begin(uint32_t sequences, uint32_t context = 64 * 5) {
        load(64 + sequences - 1, sequences, context);
        GeneratorOptions options;
        options.contain_errors = true;
        generator_.emplace(engine(), *tokenizer_, options);
        for (int i = 0; text_.empty() || tokenizer_->encode(text_, {.add_special = true}).size() < 3 * 64 + 20; ++i)
            text_ += "The key of box " + std::to_string(i) + " is red. ";
    }
    Request again(Found& found, bool scores, bool reuse = false) {
        Request made = request(text_, found, 5);
        made.reuse = reuse;
        for (const Token end : tokenizer_->generation_ends())
            made.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
        if (!scores) return made;
        made.prompt_probabilities = 0;
        made.on_prompt_probabilities = [&found](const TokenProbabilities& token) { found.scores.push_back(token); };
        return made;
    }
    Found ask(bool scores) {
        Found found;
        generator_->add(again(found, scores));
        generator_->run();
        return found;
    }
    static void expect_same(const Found& found, const Found& expected) {
        EXPECT_EQ(found.answer.reason, FinishReason::kLength) << found.answer.error;
        EXPECT_EQ(found.answer.tokens, expected.answer.tokens);
        EXPECT_EQ(found.answer.new_tokens, 5u);
        EXPECT_EQ(found.text, expected.text);
        ASSERT_EQ(found.scores.size(), expected.scores.size());
        for (size_t i = 0; i < found.scores.size(); ++i)
            ASSERT_EQ(found.scores[i].log_probability, expected.scores[i].log_probability) << i;
    }
    void expect_no_page_lost() {
        EXPECT_EQ(engine().cache().free_pages() + generator_->prefixes().evictable(), engine().cache().page_count());
    }

    std::string text_;
    std::optional<Generator> generator_;
};

TEST_F(RepeatedPrompt, GetsTheSameAnswerThoughBothDoNotFit) {
    begin(1);
    const Found first = ask(false);
    ASSERT_EQ(first.answer.new_tokens, 5u);
    for (int i = 0; i < 3; ++i) expect_same(ask(false), first);
    expect_no_page_lost();
}

TEST_F(RepeatedPrompt, GetsTheSameScoresThoughBothDoNotFit) {
    begin(1);
    const Found first = ask(true);
    ASSERT_EQ(first.scores.size() + 1, first.answer.prompt_tokens);
    for (int i = 0; i < 3; ++i) expect_same(ask(true), first);
    // What is cached has been computed otherwise, by chunks.
    ask(false);
    expect_same(ask(true), first);
    expect_no_page_lost();
}

// Some of them find what others compute, and hold it meanwhile.
TEST_F(RepeatedPrompt, GetsTheSameAnswersBesideOthersThatUseTheCachedOne) {
    begin(1);
    const Found alone = ask(true);
    generator_.reset();
    model_.reset();
    begin(3, 64 * 6);
    std::vector<Found> found(9);
    for (size_t i = 0; i < found.size(); ++i) generator_->add(again(found[i], i % 3 == 1, i % 3 == 2));
    generator_->run();
    for (size_t i = 0; i < found.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_EQ(found[i].answer.reason, FinishReason::kLength) << found[i].answer.error;
        EXPECT_EQ(found[i].answer.new_tokens, 5u);
        EXPECT_EQ(found[i].scores.size(), i % 3 == 1 ? alone.scores.size() : 0);
    }
    expect_no_page_lost();
}

// Its pages are there for others even where the cached ones before them are another request's.
TEST_F(RepeatedPrompt, IsFoundByOthersWhenItHasEnded) {
    begin(3, 64 * 24);
    ask(false);
    Found held, longer, other;
    Request holds = again(held, false, true);
    holds.max_new_tokens = 200;
    generator_->add(std::move(holds));
    ASSERT_TRUE(generator_->step());
    text_ += text_;
    generator_->add(again(longer, false));
    while (longer.order == 0) ASSERT_TRUE(generator_->step());
    ASSERT_EQ(held.order, 0u);
    generator_->add(again(other, false, true));
    generator_->run();
    EXPECT_GE(other.answer.reused_tokens, (other.answer.prompt_tokens - 1) / 64 * 64);
    expect_no_page_lost();
}

TEST_F(RepeatedPrompt, FailsWhereThePagesAreNotToBeHad) {
    begin(1);
    PagedCache& cache = engine().cache();
    const SequenceId taken = cache.create();
    std::vector<PageCopy> copies;
    cache.append(taken, 3 * 64, copies);
    for (const bool scores : {false, true}) {
        const Found found = ask(scores);
        EXPECT_EQ(found.answer.reason, FinishReason::kFailed);
        EXPECT_EQ(found.answer.error_code, TSR_DOES_NOT_FIT);
        EXPECT_THAT(found.answer.error, testing::HasSubstr("pages"));
        EXPECT_EQ(found.answer.new_tokens, 0u);
    }
    cache.remove(taken);
    EXPECT_EQ(ask(true).answer.new_tokens, 5u);
    expect_no_page_lost();
}

TEST_F(RepeatedPrompt, IsNotScoredWithWhatOthersHaveComputed) {
    begin(1);
    ask(false);
    Found found;
    try {
        generator_->add(again(found, true, true));
        FAIL() << "not refused";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(), testing::HasSubstr("reuse"));
    }
    EXPECT_FALSE(generator_->step());
}

}  // namespace
}  // namespace tessera::session
