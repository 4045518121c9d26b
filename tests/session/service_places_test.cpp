// Who waits, and for what.
#include "tests/session/service_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace tessera::session {
namespace {

TEST(WaitingCounts, OfEachClientAndOfAll) {
    WaitingCounts counts;
    counts.add("a", {2, 10});
    counts.add("b", {1, 5});
    counts.add("a", {1, 1});
    EXPECT_EQ(counts.all(), (Waiting{4, 16}));
    EXPECT_EQ(counts.of("a"), (Waiting{3, 11}));
    EXPECT_EQ(counts.of("c"), Waiting());
    counts.remove("c", {1, 1});
    counts.remove("b", {1, 5});
    EXPECT_EQ(counts.clients(), 1u) << "nothing is kept of clients that are gone";
    counts.remove("a", {1, 10});
    EXPECT_EQ(counts.all(), (Waiting{2, 1}));
    counts.remove("a", {2, 1});
    EXPECT_EQ(counts.all(), Waiting());
    EXPECT_EQ(counts.clients(), 0u);
}

// What is published against a count of all requests, at every point at which anybody can look.
TEST_F(ServiceTest, WhatWaitsIsCountedAsItComesAndLeaves) {
    load(64 + 2, 3, 1024);
    ServiceOptions options;
    options.waiting_requests = 1000;
    Service service(engine(), *tokenizer_, options);
    struct Sent {
        std::string client;
        uint64_t tokens;
    };
    std::map<RequestId, Sent> sent;
    std::vector<RequestId> ended;
    std::vector<Result> results(120);
    std::mt19937 random(5);
    size_t submitted = 0, looks = 0, most = 0;
    const auto look = [&] {
        const ServiceStatus status = service.status();
        std::set<RequestId> others;
        for (const RequestState& state : status.running) others.insert(state.id);
        ASSERT_LE(status.counters.finished, ended.size());
        others.insert(ended.begin(), ended.begin() + static_cast<std::ptrdiff_t>(status.counters.finished));
        Waiting all;
        std::map<std::string, Waiting> by_client;
        for (const auto& [id, request] : sent) {
            if (others.contains(id)) continue;
            for (Waiting* count : {&all, &by_client[request.client]}) {
                ++count->requests;
                count->tokens += request.tokens;
            }
        }
        ASSERT_EQ(status.waiting, all);
        for (const char* client : {"a", "b", "c", "d"}) ASSERT_EQ(service.waiting_of(client), by_client[client]);
        ++looks;
        most = std::max(most, all.requests);
    };
    std::function<void()> act;
    const auto submit = [&](size_t count) {
        std::vector<Request> requests;
        const std::string client(1, static_cast<char>('a' + random() % 4));
        for (; count > 0 && submitted < results.size(); --count) {
            Request made = request(question(static_cast<int>(random() % 40)), results[submitted], 1 + random() % 5);
            made.client = client;
            made.on_text = [&](std::string_view) { look(); };
            made.on_finish = [&](const Answer& answer) {
                ended.push_back(answer.id);
                look();
                act();
            };
            requests.push_back(std::move(made));
            ++submitted;
        }
        if (requests.empty()) return;
        std::vector<Sent> of;
        for (const Request& one : requests) of.push_back({one.client, one.prompt.size()});
        RequestId id = service.submit(std::move(requests));
        for (Sent& one : of) sent.emplace(id++, std::move(one));
        look();
    };
    act = [&] {
        if (submitted == results.size()) return service.close();
        submit(1 + random() % 3);
        if (random() % 3 == 0) service.cancel(1 + random() % sent.size());
    };
    for (int i = 0; i < 6; ++i) submit(5);
    service.run();
    EXPECT_EQ(ended.size(), results.size());
    EXPECT_EQ(service.status().waiting, Waiting());
    EXPECT_GT(looks, results.size());
    EXPECT_GT(most, 20u);
}

TEST_F(ServiceTest, AScoredPromptLeavesWholeChunksToOthersOfItsClient) {
    load(64 + 3, 4, 4096);
    Generator generator(engine(), *tokenizer_, {.chunk_rows = 64});
    Result scored, other;
    std::string text;
    for (int i = 0; i < 40; ++i) text += "The key of box " + std::to_string(i) + " is red. ";
    size_t scores = 0, scores_then = 0;
    Request first = request(text, scored, 1);
    first.reuse = false;
    first.prompt_probabilities = 0;
    first.on_prompt_probabilities = [&](const TokenProbabilities&) { ++scores; };
    const size_t tokens = first.prompt.size();
    Request second = request("No " + text, other, 1);
    second.reuse = false;
    const size_t chunks = (second.prompt.size() + 63) / 64;
    second.on_text = [&](std::string_view) { scores_then = scores; };
    generator.add(std::move(first));
    generator.add(std::move(second));
    generator.run();
    EXPECT_EQ(scores, tokens - 1);
    EXPECT_GT(tokens, 4 * chunks) << "the prompt is too short to tell";
    EXPECT_GE(scores_then, 1u);
    EXPECT_LE(scores_then, chunks + 1) << "a chunk a step beside the scored tokens";
}

// Pages of a few small answers, so that those of one client hold all of them.
class Pages : public ServiceTest {
  protected:
    void begin(size_t requests, uint32_t length) {
        load(64 + 3, 4, 64 * 8);
        generator_.emplace(engine(), *tokenizer_);
        flood_.resize(requests);
        for (Result& result : flood_) add("flood", result, length);
    }
    void add(const std::string& client, Result& result, uint32_t length, const std::string& before = "") {
        Request made = request(before + question(static_cast<int>(++asked_)), result, length);
        made.client = client;
        made.reuse = false;
        for (const Token end : tokenizer_->generation_ends())
            made.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
        generator_->add(std::move(made));
    }
    uint64_t available() { return engine().cache().free_pages() + generator_->prefixes().evictable(); }
    bool runs(const std::string& client) {
        const auto states = generator_->states();
        return std::ranges::any_of(states,
                                   [&](const RequestState& state) { return state.client == client && !state.paused; });
    }
    void expect_all_complete(uint32_t length) {
        for (const Result& result : flood_) {
            EXPECT_EQ(result.answer.reason, FinishReason::kLength);
            EXPECT_EQ(result.answer.new_tokens, length);
        }
        EXPECT_EQ(available(), engine().cache().page_count());
    }

    std::optional<Generator> generator_;
    std::vector<Result> flood_;
    size_t asked_ = 0;
};

TEST_F(Pages, AClientWithNothingGetsThoseOfAnothersSurplusAtOnce) {
    begin(6, 150);
    while (available() > 3) ASSERT_TRUE(generator_->step());
    ASSERT_EQ(ended_, 0u);
    Result light;
    add("light", light, 100);
    ASSERT_TRUE(generator_->step());
    EXPECT_TRUE(runs("light"));
    EXPECT_GT(generator_->counters().preempted, 0u);
    // And keeps them while the others' answers grow.
    while (light.order == 0) {
        ASSERT_TRUE(generator_->step());
        EXPECT_TRUE(light.order > 0 || runs("light"));
        EXPECT_TRUE(runs("flood")) << "none takes all of another's";
    }
    EXPECT_EQ(light.answer.recomputed_tokens, 0u);
    generator_->run();
    expect_all_complete(150);
}

TEST_F(Pages, TheOnlyAnswerOfAClientKeepsItsOwn) {
    begin(1, 440);
    while (available() > 4) ASSERT_TRUE(generator_->step());
    Result light;
    std::string much;
    for (int i = 0; i < 20; ++i) much += "The key of box " + std::to_string(i) + " is red. ";
    add("light", light, 4, much);
    generator_->run();
    EXPECT_EQ(flood_[0].order, 1u);
    EXPECT_EQ(light.order, 2u);
    EXPECT_EQ(generator_->counters().preempted, 0u);
    EXPECT_EQ(generator_->counters().paused, 0u);
    EXPECT_EQ(flood_[0].answer.recomputed_tokens, 0u);
}

// However pages go to and fro, answers are completed, and little is computed again.
TEST_F(Pages, ManyClientsWithTooFewAllEnd) {
    std::mt19937 random(17);
    for (int round = 0; round < 2; ++round) {
        generator_.reset();
        model_.reset();
        ended_ = 0;
        begin(8, 100);
        std::vector<Result> others(24);
        size_t added = 0, steps = 0;
        while (generator_->step() || added < others.size()) {
            ++steps;
            if (added == others.size() || random() % 12 != 0) continue;
            add(std::string(1, static_cast<char>('a' + random() % 5)), others[added], 1 + random() % 120);
            ++added;
        }
        expect_all_complete(100);
        for (const Result& result : others) EXPECT_EQ(result.answer.reason, FinishReason::kLength);
        // One after another they would need as many steps as they have tokens, 2,300.
        EXPECT_LT(steps, 4'000u);
    }
}

}  // namespace
}  // namespace tessera::session
