// Prompts over two cards: chunks are under way at once, and whoever else wants something is served right.
#include "core/base/error.hpp"
#include "core/session/service.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/run/simulated_rig.hpp"
#include "tests/session/page_store_of.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint32_t kRows = 32, kSequences = 3;
constexpr uint32_t kChunk = kRows - kSequences + 1;
constexpr const char* kCards[] = {"SIM0", "SIM1"};

struct Result {
    Answer answer;
    std::vector<uint32_t> progress;  // tokens of the prompt
    bool ended = false;
};

class PipelineTest : public testing::Test {
  protected:
    // ThreadSanitizer names functions, by which it suppresses reports (tests/tsan.supp), of libraries alone that were
    // there at its first report, which may come with the first model, before one has cards.
    PipelineTest() { failures(); }
    void load(bool cards, uint32_t context = 1024) {
        EngineOptions options;
        options.context = context;
        options.rows = kRows;
        options.sequences = kSequences;
        options.check_order = true;
        if (cards) options.placement.tensor_split = {1, 1};
        tokenizer_.reset();
        model_ = std::make_unique<test::LoadedModel>(
            test::golden("v3-groups.gguf"), options,
            test::rig_config(cards ? std::vector<uint32_t>{860, 860} : std::vector<uint32_t>{}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(engine().file().metadata()));
        if (cards) {
            for (const char* id : kCards) failures().reset(id);
            ASSERT_EQ(engine().plan().step.slots, 3u);
            for (DeviceIndex device : {1, 2}) ASSERT_GT(engine().plan().memory[device].weights, 0u);
        }
    }
    ~PipelineTest() override {
        for (const char* id : kCards) failures().reset(id);
    }
    Engine& engine() { return *model_->engine; }
    static const tsr_simulated_failures& failures() { return test::simulated_failures(); }

    static uint64_t waits() {
        uint64_t count = 0;
        for (const char* id : kCards) count += failures().count(id, TSR_SIMULATED_WAIT_EVENT, nullptr);
        return count;
    }

    std::vector<Token> tokens(size_t count, uint32_t seed) {
        std::mt19937 random(seed);
        return test::random_tokens(engine(), random, count);
    }

    static Request request(std::vector<Token> prompt, Result& result, uint32_t length = 4) {
        Request made;
        made.prompt = std::move(prompt);
        made.sampling.temperature = 0;
        made.max_new_tokens = length;
        made.on_prompt = [&result](const PromptProgress& progress) { result.progress.push_back(progress.done); };
        made.on_finish = [&result](const Answer& answer) {
            result.answer = answer;
            result.ended = true;
        };
        return made;
    }

    // What the CPU answers to these alone.
    std::vector<std::vector<Token>> expected(const std::vector<std::vector<Token>>& prompts, uint32_t length = 4) {
        load(false);
        std::vector<std::vector<Token>> answers;
        for (const std::vector<Token>& prompt : prompts) {
            Generator generator(engine(), *tokenizer_);
            Result result;
            generator.add(request(prompt, result, length));
            generator.run();
            answers.push_back(result.answer.tokens);
        }
        return answers;
    }

    void expect_all_pages_free(const Generator& generator) {
        EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
        EXPECT_EQ(generator.prefixes().evictable(), generator.prefixes().size());
    }

    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(PipelineTest, ChunksAreUnderWayAtOnce) {
    std::vector<Token> prompt;
    {
        load(false);
        prompt = tokens(7 * kChunk + 5, 1);
    }
    const std::vector<Token> wanted = expected({prompt}).front();
    load(true);
    Generator generator(engine(), *tokenizer_);
    Result result;
    generator.add(request(prompt, result));
    for (size_t chunks = 1; chunks <= 3; ++chunks) {
        ASSERT_TRUE(generator.step());
        EXPECT_EQ(engine().under_way(), chunks);
        EXPECT_EQ(waits(), 0u) << "after chunk " << chunks;
    }
    EXPECT_THAT(result.progress, ElementsAre()) << "of what has not ended";
    EXPECT_EQ(generator.states().front().cached_tokens, 0u);
    EXPECT_EQ(generator.timings().prompt_tokens, 0u);
    ASSERT_TRUE(generator.step());
    EXPECT_EQ(engine().under_way(), 3u);
    EXPECT_THAT(result.progress, ElementsAre(kChunk));
    EXPECT_EQ(generator.timings().prompt_tokens, kChunk);
    generator.run();
    EXPECT_EQ(result.answer.tokens, wanted);
    EXPECT_THAT(result.progress, ElementsAre(kChunk, 2 * kChunk, 3 * kChunk, 4 * kChunk, 5 * kChunk, 6 * kChunk,
                                             7 * kChunk, prompt.size()));
    EXPECT_EQ(generator.timings().prompt_tokens, prompt.size());
    EXPECT_EQ(generator.counters().prompt_tokens, prompt.size());
    EXPECT_EQ(generator.counters().steps, 8u + 3u);
    expect_all_pages_free(generator);
}

// Who generates is not held up by more than one chunk: those steps are waited for.
TEST_F(PipelineTest, ThereIsOneChunkAtATimeWhileOthersGenerate) {
    load(true);
    Generator generator(engine(), *tokenizer_);
    Result stream, prompt;
    generator.add(request(tokens(5, 1), stream, 40));
    ASSERT_TRUE(generator.step());
    generator.add(request(tokens(5 * kChunk, 2), prompt));
    for (int i = 0; i < 4; ++i) {
        const uint64_t before = generator.counters().generated_tokens;
        ASSERT_TRUE(generator.step());
        EXPECT_EQ(engine().under_way(), 0u);
        EXPECT_EQ(generator.counters().generated_tokens, before + 1);
    }
    generator.run();
    EXPECT_EQ(prompt.answer.reason, FinishReason::kLength) << prompt.answer.error;
}

TEST_F(PipelineTest, AnotherClientGetsTheNextChunk) {
    load(false);
    const std::vector<std::vector<Token>> prompts = {tokens(12 * kChunk, 1), tokens(kChunk - 3, 2)};
    const auto wanted = expected(prompts);
    load(true);
    Generator generator(engine(), *tokenizer_);
    Result found[2];
    generator.add(request(prompts[0], found[0]));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(generator.step());
    EXPECT_EQ(engine().under_way(), 3u);
    Request made = request(prompts[1], found[1]);
    made.client = "another";
    generator.add(std::move(made));
    ASSERT_TRUE(generator.step());
    EXPECT_THAT(found[1].progress, ElementsAre(prompts[1].size())) << "one step after it was added";
    EXPECT_EQ(found[0].progress.size(), 3u) << "all that was under way has ended";
    generator.run();
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].answer.tokens, wanted[i]);
}

// Pages of steps under way can be used by others when those have ended: that is waited for.
TEST_F(PipelineTest, APrefixUnderWayIsWaitedFor) {
    load(false);
    std::vector<std::vector<Token>> prompts(2, tokens(6 * kChunk, 1));
    for (size_t at = TSR_PAGE_TOKENS + 5; at < prompts[1].size(); ++at) prompts[1][at] = (prompts[1][at] + 1) % 64;
    const auto wanted = expected(prompts);
    load(true);
    Generator generator(engine(), *tokenizer_);
    Result found[2];
    generator.add(request(prompts[0], found[0]));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(generator.step());
    EXPECT_GE(3 * kChunk, TSR_PAGE_TOKENS) << "the page is under way";
    generator.add(request(prompts[1], found[1]));
    generator.run();
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].answer.tokens, wanted[i]);
    EXPECT_GE(found[1].answer.reused_tokens, TSR_PAGE_TOKENS);
}

TEST_F(PipelineTest, AFailureEndsAllThatIsUnderWay) {
    load(false);
    const std::vector<std::vector<Token>> prompts = {tokens(8 * kChunk, 1), tokens(9 * kChunk, 2), tokens(20, 3)};
    const auto wanted = expected(prompts);
    load(true);
    GeneratorOptions options;
    options.contain_errors = true;
    Generator generator(engine(), *tokenizer_, options);
    // Of the second card, in the first step: found when that is waited for, or before.
    failures().fail("SIM1", TSR_SIMULATED_EXECUTE_KERNEL, nullptr, 0, 1);
    Result found[3];
    for (size_t i = 0; i < 2; ++i) {
        Request made = request(prompts[i], found[i]);
        made.client = "client " + std::to_string(i);
        generator.add(std::move(made));
    }
    while (generator.step() && generator.counters().failed_steps == 0) continue;
    EXPECT_EQ(generator.counters().failed_steps, 1u);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(found[i].answer.reason, FinishReason::kFailed) << i;
        EXPECT_THAT(found[i].answer.error, HasSubstr("SIM1"));
    }
    EXPECT_EQ(engine().under_way(), 0u);
    EXPECT_EQ(generator.prefixes().size(), 0u) << "pages without their contents";
    expect_all_pages_free(generator);
    for (const char* id : kCards) failures().reset(id);
    for (size_t i = 0; i < 3; ++i) {
        found[i] = {};
        generator.add(request(prompts[i], found[i]));
        generator.run();
        EXPECT_EQ(found[i].answer.tokens, wanted[i]);
    }
}

// Of three steps under way the first has ended, and the second fails. Devices do no more than they are waited for.
TEST_F(PipelineTest, WhatHadEndedBeforeAFailureIsKeptAndNoMore) {
    load(false);
    const std::vector<Token> prompt = tokens(8 * kChunk, 1);
    const auto wanted = expected({prompt});
    const test::CardOptions first(kCards[0], TSR_SIMULATED_ON_WAIT), second(kCards[1], TSR_SIMULATED_ON_WAIT);
    load(true);
    const SequenceId measured = engine().cache().create();
    const BatchEntry chunk{measured, std::span(prompt).first(kChunk), false};
    engine().submit({&chunk, 1});
    engine().finish();
    engine().cache().remove(measured);
    const uint64_t kernels = failures().count("SIM1", TSR_SIMULATED_EXECUTE_KERNEL, nullptr);
    ASSERT_GT(kernels, 1u);
    failures().reset("SIM1");
    failures().fail("SIM1", TSR_SIMULATED_EXECUTE_KERNEL, nullptr, kernels + kernels / 2, 1);
    GeneratorOptions options;
    options.contain_errors = true;
    Generator generator(engine(), *tokenizer_, options);
    Result found;
    generator.add(request(prompt, found));
    generator.run();
    EXPECT_EQ(found.answer.reason, FinishReason::kFailed);
    EXPECT_THAT(found.progress, ElementsAre(kChunk));
    found = {};
    generator.add(request(prompt, found));
    generator.run();
    EXPECT_EQ(found.answer.reused_tokens, kChunk);
    EXPECT_EQ(found.answer.tokens, wanted.front());
}

// Not contained: the requests stay, and can be tried again.
TEST_F(PipelineTest, AFailureIsThrownAndTheRequestsStay) {
    load(false);
    const std::vector<Token> prompt = tokens(8 * kChunk, 1);
    const auto wanted = expected({prompt});
    load(true);
    Generator generator(engine(), *tokenizer_);
    failures().fail("SIM1", TSR_SIMULATED_EXECUTE_KERNEL, nullptr, 0, 1);
    Result found;
    generator.add(request(prompt, found));
    EXPECT_THROW(generator.run(), Error);
    EXPECT_FALSE(found.ended);
    EXPECT_EQ(engine().under_way(), 0u);
    ASSERT_EQ(generator.active(), 1u);
    EXPECT_EQ(generator.states().front().cached_tokens, 0u);
    generator.run();
    EXPECT_EQ(found.answer.tokens, wanted.front());
}

TEST_F(PipelineTest, CancellingWaitsForWhatIsUnderWay) {
    load(false);
    const std::vector<std::vector<Token>> prompts = {tokens(9 * kChunk, 1), tokens(3 * kChunk, 2)};
    const auto wanted = expected(prompts);
    load(true);
    Generator generator(engine(), *tokenizer_);
    Result found[3];
    const RequestId first = generator.add(request(prompts[0], found[0]));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(generator.step());
    const GeneratorCounters before = generator.counters();
    generator.cancel(first);
    EXPECT_GT(generator.counters().busy_seconds, before.busy_seconds) << "the wait is work";
    EXPECT_GT(generator.counters().prompt_seconds, before.prompt_seconds);
    EXPECT_EQ(found[0].answer.reason, FinishReason::kCancelled);
    EXPECT_EQ(engine().under_way(), 0u);
    expect_all_pages_free(generator);
    generator.add(request(prompts[1], found[1]));
    generator.add(request(prompts[0], found[2]));
    generator.run();
    EXPECT_EQ(found[1].answer.tokens, wanted[1]);
    EXPECT_EQ(found[2].answer.tokens, wanted[0]);
    EXPECT_EQ(found[2].answer.reused_tokens, 3 * kChunk) << "what had been computed is used";
}

// Two prompts that do not fit together, of which the younger one gives up its pages: not while they are written to.
TEST_F(PipelineTest, PagesAreTakenFromARequestWhenNothingIsUnderWay) {
    load(false);
    const std::vector<std::vector<Token>> prompts = {tokens(4 * TSR_PAGE_TOKENS - 9, 1),
                                                     tokens(3 * TSR_PAGE_TOKENS - 9, 2)};
    const auto wanted = expected(prompts);
    load(true, 4 * TSR_PAGE_TOKENS);
    ASSERT_EQ(engine().cache().page_count(), 6u);
    Generator generator(engine(), *tokenizer_);
    Result found[2];
    generator.add(request(prompts[0], found[0]));
    ASSERT_TRUE(generator.step());
    Request made = request(prompts[1], found[1]);
    made.client = "another";
    generator.add(std::move(made));
    size_t under_way = 0;
    while (generator.counters().preempted == 0) {
        under_way = engine().under_way();
        ASSERT_TRUE(generator.step());
        ASSERT_EQ(generator.active(), 2u);
    }
    EXPECT_EQ(under_way, 0u);
    EXPECT_EQ(generator.counters().generated_tokens, 0u) << "no step was waited for but for the pages";
    generator.run();
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found[i].answer.tokens, wanted[i]);
    expect_all_pages_free(generator);
}

TEST_F(PipelineTest, AGeneratorEndsWithStepsUnderWay) {
    load(false);
    const std::vector<std::vector<Token>> prompts = {tokens(9 * kChunk, 1), tokens(3 * kChunk, 2)};
    const auto wanted = expected(prompts);
    load(true);
    Result found[2];
    {
        Generator generator(engine(), *tokenizer_);
        generator.add(request(prompts[0], found[0]));
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(generator.step());
    }
    EXPECT_EQ(engine().under_way(), 0u);
    EXPECT_EQ(engine().cache().free_pages(), engine().cache().page_count());
    Generator generator(engine(), *tokenizer_);
    generator.add(request(prompts[1], found[1]));
    generator.run();
    EXPECT_EQ(found[1].answer.tokens, wanted[1]);
}

// Requests that come at any time, are given up, and take each other's pages: each gets what it gets alone.
TEST_F(PipelineTest, CompanyChangesNothing) {
    load(false);
    constexpr uint32_t kLength = 40;
    std::mt19937 random(11);
    std::vector<std::vector<Token>> prompts;
    for (uint32_t i = 0; i < 14; ++i) {
        std::vector<Token> prompt = tokens(200, i % 3);  // some begin alike
        prompt.resize(20 + random() % 180);
        for (size_t at = prompt.size() * 2 / 3; at < prompt.size(); ++at)
            prompt[at] = static_cast<Token>(random() % 64);
        prompts.push_back(std::move(prompt));
    }
    const auto wanted = expected(prompts, kLength);
    load(true, 256);
    GeneratorOptions options;
    options.contain_errors = true;
    Generator generator(engine(), *tokenizer_, options);
    std::vector<Result> found(prompts.size());
    std::map<size_t, RequestId> given_up;
    size_t next = 0, most_under_way = 0;
    for (bool more = true; more || next < prompts.size();) {
        while (next < prompts.size() && random() % 3 == 0) {
            Request made = request(prompts[next], found[next], kLength);
            made.client = "client " + std::to_string(next % 2);
            const RequestId id = generator.add(std::move(made));
            if (next % 5 == 4) given_up[next] = id;
            ++next;
        }
        more = generator.step();
        most_under_way = std::max(most_under_way, engine().under_way());
        if (!given_up.empty() && random() % 6 == 0) {
            generator.cancel(given_up.begin()->second);
            given_up.erase(given_up.begin());
        }
    }
    EXPECT_EQ(most_under_way, 3u);
    EXPECT_GT(generator.counters().preempted, 0u);
    EXPECT_EQ(generator.counters().failed_steps, 0u);
    for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_TRUE(found[i].ended) << i;
        if (found[i].answer.reason == FinishReason::kCancelled) continue;
        EXPECT_EQ(found[i].answer.tokens, wanted[i]) << i;
    }
    expect_all_pages_free(generator);
}

TEST_F(PipelineTest, AServiceTellsAllClientsOfALostCard) {
    load(true);
    Service service(engine(), *tokenizer_, {});
    std::thread thread([&] { service.run(); });
    failures().vanish("SIM1", 60);
    std::vector<std::promise<void>> done(2);
    std::vector<Result> found(2);
    for (size_t i = 0; i < 2; ++i) {
        Request made = request(tokens(9 * kChunk, static_cast<uint32_t>(i)), found[i]);
        made.client = "client " + std::to_string(i);
        made.on_finish = [&, i, finish = made.on_finish](const Answer& answer) {
            finish(answer);
            done[i].set_value();
        };
        service.submit(std::move(made));
    }
    for (std::promise<void>& each : done) each.get_future().wait();
    service.close();
    thread.join();
    EXPECT_TRUE(service.status().lost);
    for (const Result& result : found) {
        EXPECT_EQ(result.answer.reason, FinishReason::kFailed);
        EXPECT_EQ(result.answer.error_code, TSR_DEVICE_LOST) << result.answer.error;
    }
}

// Caches lie on both cards; pages go to files and come back between steps.
TEST_F(PipelineTest, KeptPagesComeFromTheCardsAndGoThere) {
    std::vector<Token> prompt, other;
    {
        load(false);
        prompt = tokens(5 * TSR_PAGE_TOKENS + 9, 31), other = tokens(4 * kChunk, 32);
    }
    const auto wanted = expected({prompt, other});
    load(true);
    for (const CacheGroup& group : engine().plan().cache_groups)
        for (DeviceIndex device : {1, 2}) ASSERT_GT(engine().plan().cache_bytes(group, device), 0u);
    test::TemporaryFolder folder;
    const auto keeping = [&] { return GeneratorOptions{.pages = test::page_store(*model_, folder)}; };
    {
        Generator generator(engine(), *tokenizer_, keeping());
        Result result;
        generator.add(request(prompt, result));
        generator.run();
        EXPECT_EQ(generator.keep_rest([] { return true; }), 0u);
        EXPECT_EQ(generator.kept()->store.pages, 5u);
    }
    // Zeros in the place of what the cards have still.
    for (PageId page = 0; page < engine().cache().page_count(); ++page)
        engine().write_page(0, page, std::vector<std::byte>(engine().page_bytes(0)));
    Generator generator(engine(), *tokenizer_, keeping());
    Result first, second;
    generator.add(request(other, second));  // chunks are under way when the other one's pages are read
    for (int step = 0; step < 2; ++step) ASSERT_TRUE(generator.step());
    generator.add(request(prompt, first));
    generator.run();
    EXPECT_EQ(first.answer.reused_tokens, 5 * TSR_PAGE_TOKENS);
    EXPECT_EQ(first.answer.tokens, wanted[0]);
    EXPECT_EQ(second.answer.tokens, wanted[1]);
    EXPECT_EQ(generator.kept()->store.read_pages, 5u);
    expect_all_pages_free(generator);
}

// A copy that fails costs what it would have saved, and no answer.
TEST_F(PipelineTest, ACardThatDoesNotTakePagesComputesThem) {
    std::vector<Token> prompt;
    {
        load(false);
        prompt = tokens(3 * TSR_PAGE_TOKENS, 33);
    }
    const auto wanted = expected({prompt});
    load(true);
    test::TemporaryFolder folder;
    {
        Generator generator(engine(), *tokenizer_, {.pages = test::page_store(*model_, folder)});
        Result result;
        generator.add(request(prompt, result));
        generator.run();
        generator.keep_rest([] { return true; });
    }
    Generator generator(engine(), *tokenizer_, {.pages = test::page_store(*model_, folder)});
    failures().fail("SIM1", TSR_SIMULATED_UPLOAD, nullptr, 0, 1);
    Result result;
    generator.add(request(prompt, result));
    generator.run();
    EXPECT_GT(generator.kept()->store.read_pages, 0u);
    EXPECT_EQ(result.answer.reused_tokens, 0u);
    EXPECT_EQ(result.answer.tokens, wanted[0]);
    expect_all_pages_free(generator);
}

}  // namespace
}  // namespace tessera::session
