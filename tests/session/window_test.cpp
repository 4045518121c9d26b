// A model of which two layers of three see a window of 70 tokens: what its caches hold and take, and that prefixes,
// rollback and company change no answer.
#include "core/base/error.hpp"
#include "core/session/generate.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/session/page_store_of.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <vector>

namespace tessera::session {
namespace {

constexpr uint32_t kWindow = 70;
constexpr GroupIndex kWindowed = 1;  // of the cache's groups

class WindowTest : public testing::Test {
  protected:
    void load(uint32_t context, uint32_t sequences = 1, uint32_t rows = 96) {
        EngineOptions options;
        options.context = context;
        options.rows = rows;
        options.sequences = sequences;
        tokenizer_.reset();
        model_ =
            std::make_unique<test::LoadedModel>(TSR_GOLDENS "/qwen3-window.gguf", options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(engine().file().metadata()));
    }
    Engine& engine() { return *model_->engine; }
    PagedCache& cache() { return engine().cache(); }

    // Without control tokens, which would end an answer.
    static std::vector<Token> tokens(size_t count, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<Token> made(count);
        for (Token& token : made) token = static_cast<Token>(4 + random() % 266);
        return made;
    }

    // Logits after each of the tokens.
    std::vector<std::vector<float>> feed(SequenceId sequence, std::span<const Token> given) {
        std::vector<std::vector<float>> logits;
        for (const Token& token : given) {
            const BatchEntry entry{sequence, {&token, 1}};
            const auto row = engine().step({&entry, 1}).front();
            logits.emplace_back(row.begin(), row.end());
        }
        return logits;
    }

    struct Result {
        Answer answer;
        std::vector<Token> given() const { return answer.tokens; }
    };
    static Request request(std::vector<Token> prompt, Result& result, uint32_t length = 40) {
        Request made;
        made.prompt = std::move(prompt);
        made.sampling.temperature = 0;
        made.max_new_tokens = length;
        made.on_finish = [&result](const Answer& answer) { result.answer = answer; };
        return made;
    }
    Answer ask(Generator& generator, std::vector<Token> prompt, uint32_t length = 40) {
        Result result;
        generator.add(request(std::move(prompt), result, length));
        generator.run();
        return result.answer;
    }
    // What a generator without anything cached answers.
    std::vector<Token> alone(std::vector<Token> prompt, uint32_t length = 40) {
        Generator generator(engine(), *tokenizer_);
        return ask(generator, std::move(prompt), length).tokens;
    }

    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(WindowTest, TakesTheMemoryOfAWindowAndNotOfTheContext) {
    std::map<uint32_t, std::map<uint32_t, uint64_t>> bytes;  // of each context, by window
    for (const uint32_t context : {2048u, 8192u}) {
        load(context);
        const Plan& plan = engine().plan();
        ASSERT_EQ(plan.cache_groups.size(), 2u);
        uint64_t all = 0;
        for (const CacheGroup& group : plan.cache_groups) {
            // Keys and values of 2 heads of 16 elements in f16.
            EXPECT_EQ(plan.cache_bytes(group, 0), group.caches.size() * group.pages * TSR_PAGE_TOKENS * 2 * 16 * 2);
            EXPECT_EQ(group.caches.size(), group.rule.window ? 4u : 2u);
            bytes[context][group.rule.window] = plan.cache_bytes(group, 0);
            all += plan.cache_bytes(group, 0);
        }
        EXPECT_EQ(all, plan.memory[0].cache);
    }
    EXPECT_EQ(bytes[8192][0], 4 * bytes[2048][0]);
    EXPECT_EQ(bytes[8192][kWindow], bytes[2048][kWindow]);
    // Twice the pages of a window and a rollback, and those of two steps of 96 rows.
    EXPECT_LE(cache().page_count(kWindowed), 2u * 5 + 1 + 3 + 1);
    // No sequence is longer than the window: then there is no other group.
    load(64);
    EXPECT_EQ(engine().plan().cache_groups.size(), 1u);
}

TEST_F(WindowTest, PagesAreGivenBackAsTheWindowMoves) {
    load(4096);
    const SequenceId sequence = cache().create();
    const std::vector<Token> text = tokens(4000, 1);
    (void)engine().prefill(sequence, text);
    const HeldPages held = cache().held(sequence, kWindowed);
    EXPECT_EQ(held.first, (4000 - kRollbackTokens - kWindow + 1) / TSR_PAGE_TOKENS);
    EXPECT_EQ(held.first + held.pages.size(), pages_for(4000));
    EXPECT_EQ(cache().pages(sequence).size(), pages_for(4000));
    EXPECT_EQ(cache().page_count(kWindowed) - cache().free_pages(kWindowed), held.pages.size());
    cache().remove(sequence);
}

TEST_F(WindowTest, RollbackGoesOnWithTheSameBits) {
    load(2048);
    const std::vector<Token> text = tokens(700, 2);
    const SequenceId straight = cache().create();
    const auto wanted = feed(straight, text);
    cache().remove(straight);
    const SequenceId sequence = cache().create();
    (void)feed(sequence, std::span(text).first(600));
    // What was drafted and is not taken, over a page's border and not.
    for (const uint32_t taken : {600u, 590u, 576u, 575u, 537u}) {
        cache().truncate(sequence, taken);
        const auto got = feed(sequence, std::span(text).subspan(taken, 600 - taken + 20));
        for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], wanted[taken + i]) << taken << " and " << i;
        cache().truncate(sequence, 600);
    }
    EXPECT_FALSE(cache().can_truncate(sequence, 300));
    try {
        cache().truncate(sequence, 300);
        FAIL() << "the window before token 300 is gone";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(), testing::HasSubstr("a window hold no longer"));
    }
    cache().truncate(sequence, 0);
    const auto again = feed(sequence, std::span(text).first(100));
    for (size_t i = 0; i < again.size(); ++i) EXPECT_EQ(again[i], wanted[i]);
    cache().remove(sequence);
}

TEST_F(WindowTest, AStepThatIsRefusedTakesNoPages) {
    load(1024);
    const SequenceId sequence = cache().create();
    (void)engine().prefill(sequence, tokens(500, 3));
    const auto free = [&] { return std::pair(cache().free_pages(), cache().free_pages(kWindowed)); };
    const auto before = free();
    const std::vector<Token> bad = {5, 6, 9999};
    const BatchEntry entry{sequence, bad};
    EXPECT_THROW((void)engine().step({&entry, 1}), Error);
    EXPECT_EQ(free(), before);
    EXPECT_EQ(cache().length(sequence), 500u);
    cache().remove(sequence);
}

TEST_F(WindowTest, AnAnswerIsContinued) {
    load(2048);
    const std::vector<Token> prompt = tokens(500, 4);
    std::vector<Token> more = alone(prompt);
    const std::vector<Token> question = tokens(90, 5);
    more.insert(more.end(), question.begin(), question.end());
    const std::vector<Token> wanted = alone(more);
    Generator generator(engine(), *tokenizer_);
    (void)ask(generator, prompt);
    const Answer second = ask(generator, more);
    EXPECT_EQ(second.reused_tokens, 539u) << "all but the last token, which was not computed";
    EXPECT_EQ(second.tokens, wanted);
    EXPECT_EQ(ask(generator, more).tokens, wanted);
}

// A prompt that goes another way far before the end finds what is still held of its window.
TEST_F(WindowTest, ABranchIsComputedFromWhereItsWindowIsHeld) {
    load(2048);
    const std::vector<Token> first = tokens(700, 6);
    std::vector<Token> second(first.begin(), first.begin() + 300);
    const std::vector<Token> other = tokens(200, 7);
    second.insert(second.end(), other.begin(), other.end());
    const std::vector<Token> wanted = alone(second), wanted_first = alone(first);
    Generator generator(engine(), *tokenizer_);
    (void)ask(generator, first);
    const Answer branch = ask(generator, second);
    EXPECT_LE(branch.reused_tokens, 300u);
    EXPECT_EQ(branch.tokens, wanted);
    // Both ends are there now.
    EXPECT_GT(ask(generator, second).reused_tokens, 400u);
    EXPECT_EQ(ask(generator, first).tokens, wanted_first);
}

// Many requests with common beginnings at once, in a cache that holds few of them.
TEST_F(WindowTest, CompanyChangesNoAnswer) {
    load(2048, 3);
    std::vector<std::vector<Token>> prompts, wanted;
    const std::vector<Token> beginning = tokens(260, 8);
    std::mt19937 random(9);
    for (uint32_t i = 0; i < 14; ++i) {
        std::vector<Token> prompt(beginning.begin(), beginning.begin() + static_cast<long>(random() % 260));
        const std::vector<Token> rest = tokens(20 + random() % 400, 100 + i);
        prompt.insert(prompt.end(), rest.begin(), rest.end());
        wanted.push_back(alone(prompt));
        prompts.push_back(std::move(prompt));
    }
    Generator generator(engine(), *tokenizer_);
    std::vector<Result> results(2 * prompts.size());
    for (size_t i = 0; i < results.size(); ++i) {
        Request made = request(prompts[i % prompts.size()], results[i]);
        made.client = std::to_string(i % 4);
        generator.add(std::move(made));
    }
    generator.run();
    for (size_t i = 0; i < results.size(); ++i) {
        EXPECT_EQ(results[i].answer.reason, FinishReason::kLength) << results[i].answer.error;
        EXPECT_EQ(results[i].answer.tokens, wanted[i % prompts.size()]) << i;
    }
    EXPECT_GT(generator.counters().reused_tokens, 0u);
    EXPECT_EQ(cache().free_pages() + generator.prefixes().size(), cache().page_count());
}

TEST_F(WindowTest, NoPageIsLost) {
    load(1024, 2);
    {
        Generator generator(engine(), *tokenizer_);
        for (uint32_t i = 0; i < 12; ++i) (void)ask(generator, tokens(100 + 60 * i, i));
        EXPECT_LT(cache().free_pages(kWindowed), cache().page_count(kWindowed)) << "for others to take up";
    }
    EXPECT_EQ(cache().free_pages(), cache().page_count());
    EXPECT_EQ(cache().free_pages(kWindowed), cache().page_count(kWindowed));
}

// What another process finds: the pages of all tokens, and of the windows those that were there at the end.
TEST_F(WindowTest, KeptPagesAreFoundWithTheirWindows) {
    load(2048);
    std::vector<Token> prompt = tokens(500, 21);
    test::TemporaryFolder folder;
    const auto keeping = [&] { return GeneratorOptions{.pages = test::page_store(*model_, folder)}; };
    const auto always = [] { return true; };
    {
        Generator generator(engine(), *tokenizer_, keeping());
        prompt = ask(generator, prompt).tokens;
        EXPECT_EQ(generator.keep_rest(always), 0u);
        EXPECT_GT(generator.kept()->store.pages, prompt.size() / TSR_PAGE_TOKENS) << "windows have files, too";
    }
    const std::vector<Token> more = tokens(30, 22);
    prompt.insert(prompt.end(), more.begin(), more.end());
    const std::vector<Token> wanted = alone(prompt);
    Generator generator(engine(), *tokenizer_, keeping());
    const Answer answer = ask(generator, prompt);
    EXPECT_EQ(answer.reused_tokens, 512u);
    EXPECT_EQ(answer.tokens, wanted);
    EXPECT_EQ(cache().free_pages() + generator.prefixes().size(), cache().page_count());
}

// Without the windows before it no beginning can be used.
TEST_F(WindowTest, KeptPagesWithoutTheirWindowsAreNotRead) {
    load(2048);
    std::vector<Token> prompt = tokens(500, 23);
    test::TemporaryFolder folder;
    {
        Generator generator(engine(), *tokenizer_, {.pages = test::page_store(*model_, folder)});
        prompt = ask(generator, prompt).tokens;
        generator.keep_rest([] { return true; });
    }
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
        if (entry.path().string().ends_with("-1")) std::filesystem::remove(entry.path());
    prompt.resize(prompt.size() + 30, 5);
    const std::vector<Token> wanted = alone(prompt);
    Generator generator(engine(), *tokenizer_, {.pages = test::page_store(*model_, folder)});
    const Answer answer = ask(generator, prompt);
    EXPECT_EQ(answer.reused_tokens, 0u);
    EXPECT_EQ(generator.kept()->store.read_pages, 0u);
    EXPECT_EQ(answer.tokens, wanted);
}

}  // namespace
}  // namespace tessera::session
