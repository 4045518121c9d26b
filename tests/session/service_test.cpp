// Many clients of one engine: what each gets, in which order, and what is left afterwards.
#include "core/base/error.hpp"
#include "tests/session/service_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <random>
#include <thread>

namespace tessera::session {
namespace {

TEST_F(ServiceTest, AThousandRequestsGetWhatEachGetsAlone) {
    load(64 + 15, 16, 4096);
    constexpr int kKinds = 45, kRequests = 1000;
    std::vector<Result> alone(kKinds), found(kRequests);
    ServiceOptions options;
    options.waiting_requests = kRequests;
    options.generator.chunk_rows = 64;
    serve(options, [&](Service& service) {
        for (int i = 0; i < kKinds; ++i) {
            std::promise<void> done;
            Request made = request(question(i), alone[i], 16);
            made.reuse = false;
            const auto finish = made.on_finish;
            made.on_finish = [&](const Answer& answer) { finish(answer), done.set_value(); };
            service.submit(std::move(made));
            done.get_future().wait();
        }
        for (int i = 0; i < kRequests; ++i) {
            Request made = request(question(i * 7 % kKinds), found[i], 16);
            made.reuse = false;
            made.client = "client " + std::to_string(i % 3);
            service.submit(std::move(made));
        }
    });
    for (int i = 0; i < kRequests; ++i) {
        const Result& expected = alone[i * 7 % kKinds];
        ASSERT_FALSE(expected.answer.tokens.empty());
        ASSERT_EQ(found[i].answer.tokens, expected.answer.tokens) << question(i * 7 % kKinds);
        ASSERT_EQ(found[i].text, expected.text);
    }
}

TEST_F(ServiceTest, CompanyChangesNothingWithFewThreadsAndLittleScratchMemory) {
    constexpr size_t kRequests = 30;
    for (const auto& [threads, scratch] : {std::pair(1u, 1ull << 20), std::pair(3u, 256ull << 10)}) {
        model_.reset();
        load(64 + 15, 16, 4096, threads, scratch);
        std::vector<Result> alone(kRequests), found(kRequests);
        ServiceOptions options;
        options.generator.chunk_rows = 64;
        serve(options, [&](Service& service) {
            const auto ask = [&](size_t i, Result& result) {
                Request made = request(question(static_cast<int>(i)), result, 16);
                made.reuse = false;
                auto done = std::make_shared<std::promise<void>>();
                made.on_finish = [finish = made.on_finish, done](const Answer& answer) {
                    finish(answer), done->set_value();
                };
                service.submit(std::move(made));
                return done->get_future();
            };
            for (size_t i = 0; i < kRequests; ++i) ask(i, alone[i]).wait();
            std::vector<std::future<void>> all;
            for (size_t i = 0; i < kRequests; ++i) all.push_back(ask(i, found[i]));
            for (auto& each : all) each.wait();
        });
        for (size_t i = 0; i < kRequests; ++i) {
            ASSERT_FALSE(alone[i].text.empty());
            ASSERT_EQ(found[i].answer.tokens, alone[i].answer.tokens)
                << question(static_cast<int>(i)) << ", threads " << threads;
        }
    }
}

TEST_F(ServiceTest, WithTheSameHitCompanyChangesNothing) {
    load(64 + 15, 16, 8192);
    constexpr size_t kRequests = 16;
    std::string common = "<｜User｜>";
    for (int i = 0; i < 10; ++i)
        common += "The key of box " + std::to_string(i) + " is " + std::to_string(i * 7) + ". ";
    std::vector<Result> alone(kRequests), found(kRequests);
    ServiceOptions options;
    options.generator.chunk_rows = 64;
    serve(options, [&](Service& service) {
        const auto ask = [&](const std::string& prompt, Result& result, std::string space) {
            Request made = request(prompt, result, 16);
            made.space = std::move(space);
            auto done = std::make_shared<std::promise<void>>();
            made.on_finish = [finish = made.on_finish, done](const Answer& answer) {
                finish(answer), done->set_value();
            };
            service.submit(std::move(made));
            return done->get_future();
        };
        const auto asked = [&](size_t i) {
            return common + "What is the key of box " + std::to_string(i % 10) + "?<｜Assistant｜>";
        };
        std::vector<Result> seeds(2 * kRequests);
        for (size_t i = 0; i < 2 * kRequests; ++i) ask(common, seeds[i], std::to_string(i)).wait();
        for (size_t i = 0; i < kRequests; ++i) ask(asked(i), alone[i], std::to_string(i)).wait();
        std::vector<std::future<void>> all;
        for (size_t i = 0; i < kRequests; ++i) all.push_back(ask(asked(i), found[i], std::to_string(kRequests + i)));
        for (auto& each : all) each.wait();
    });
    for (size_t i = 0; i < kRequests; ++i) {
        EXPECT_GT(found[i].answer.reused_tokens, 64u);
        ASSERT_EQ(found[i].answer.reused_tokens, alone[i].answer.reused_tokens);
        ASSERT_EQ(found[i].answer.tokens, alone[i].answer.tokens) << i;
    }
}

TEST_F(ServiceTest, TooFewPagesDelayRequestsAndChangeNothing) {
    load(64 + 7, 8, 1024);
    std::vector<Result> alone(12), found(12);
    serve({}, [&](Service& service) {
        for (int i = 0; i < 12; ++i) {
            std::promise<void> done;
            Request made = request(question(i), alone[i], 60);
            made.reuse = false;
            const auto finish = made.on_finish;
            made.on_finish = [&](const Answer& answer) { finish(answer), done.set_value(); };
            service.submit(std::move(made));
            done.get_future().wait();
        }
    });
    model_.reset();
    // All eight together need more pages than there are.
    load(64 + 7, 8, 256);
    const ServiceStatus status = serve({}, [&](Service& service) {
        for (int i = 0; i < 12; ++i) {
            Request made = request(question(i), found[i], 60);
            made.sampling.logit_bias.clear();
            service.submit(std::move(made));
        }
    });
    for (int i = 0; i < 12; ++i) {
        EXPECT_EQ(found[i].text, alone[i].text) << question(i);
        EXPECT_EQ(found[i].answer.new_tokens, alone[i].answer.new_tokens) << "nothing is sent twice";
    }
    EXPECT_EQ(status.counters.finished, 12u);
}

TEST_F(ServiceTest, TheYoungestGivesUpItsPagesAndIsComputedAgain) {
    // Two prompts fit, and not what both of them become.
    load(64 + 1, 2, 64 * 3);
    std::vector<Result> found(2);
    ServiceStatus status;
    Service service(engine(), *tokenizer_, {});
    for (int i = 0; i < 2; ++i) {
        Request made =
            request("<｜User｜>Count from " + std::to_string(i) + " to 10 in French.<｜Assistant｜>", found[i], 120);
        for (const Token end : tokenizer_->generation_ends())
            made.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
        service.submit(std::move(made));
    }
    service.close();
    service.run();
    status = service.status();
    EXPECT_GE(status.counters.preempted, 1u);
    EXPECT_GE(status.counters.recomputed_tokens, 1u);
    EXPECT_LT(found[0].order, found[1].order) << "the oldest is not delayed";
    for (const Result& result : found) {
        EXPECT_EQ(result.answer.reason, FinishReason::kLength);
        EXPECT_EQ(result.answer.new_tokens, 120u);
        EXPECT_EQ(result.answer.tokens.size(), result.answer.prompt_tokens + 120);
    }
    EXPECT_GT(found[1].answer.recomputed_tokens, 0u);
    EXPECT_EQ(found[0].answer.recomputed_tokens, 0u);
}

TEST_F(ServiceTest, ALightClientIsNotHeldUpByAFlood) {
    load(64 + 3, 4, 4096);
    std::vector<Result> flood(40);
    Result light;
    ServiceStatus status;
    Service service(engine(), *tokenizer_, {});
    for (size_t i = 0; i < flood.size(); ++i) {
        Request made = request(question(static_cast<int>(i)), flood[i], 24);
        made.client = "flood";
        service.submit(std::move(made));
    }
    Request made = request(question(3), light, 24);
    made.client = "light";
    service.submit(std::move(made));
    service.close();
    service.run();
    EXPECT_LE(light.order, 8u) << "of 41";
    for (const Result& result : flood) EXPECT_NE(result.answer.reason, FinishReason::kFailed);
}

TEST_F(ServiceTest, AClientWithNothingRunningDoesNotWaitBehindAFullQueue) {
    load(64 + 2, 2, 4096);
    Generator generator(engine(), *tokenizer_, {});
    std::vector<Result> flood(8);
    Result light;
    for (size_t i = 0; i < flood.size(); ++i) {
        Request made = request(question(static_cast<int>(i)), flood[i], 100);
        made.client = "flood";
        generator.add(std::move(made));
    }
    ASSERT_TRUE(generator.step());
    Request made = request(question(3), light, 4);
    made.client = "light";
    generator.add(std::move(made));
    ASSERT_TRUE(generator.step());
    EXPECT_EQ(std::ranges::count(generator.states(), "light", &RequestState::client), 1);
    EXPECT_EQ(generator.counters().paused, 1u);
    generator.cancel_all();
}

TEST_F(ServiceTest, AShortPromptWaitsForOneChunkOfAnotherClient) {
    load(64 + 3, 4, 4096);
    Generator generator(engine(), *tokenizer_, {.chunk_rows = 64});
    std::string long_text;
    for (int i = 0; i < 60; ++i) long_text += "The key of box " + std::to_string(i) + " is red. ";
    Result flood[2], light;
    for (Result& result : flood) {
        Request made = request(long_text + std::to_string(&result - flood), result, 4);
        made.client = "flood";
        generator.add(std::move(made));
    }
    ASSERT_TRUE(generator.step());
    Request made = request(question(3), light, 4);
    made.client = "light";
    generator.add(std::move(made));
    ASSERT_TRUE(generator.step());
    ASSERT_TRUE(generator.step());
    EXPECT_FALSE(light.text.empty()) << "two steps after it was added";
    EXPECT_TRUE(flood[0].text.empty());
    generator.run();
}

TEST_F(ServiceTest, ChunksDeepInAPromptAreSmaller) {
    load(192 + 3, 4, 4096);
    const auto steps = [&](double seconds) {
        Generator generator(engine(), *tokenizer_, {.chunk_rows = 192, .chunk_seconds = seconds});
        Result found;
        std::string long_text;
        for (int i = 0; i < 280; ++i) long_text += "The key of box " + std::to_string(i) + " is red. ";
        Request made = request(long_text, found, 1);
        made.reuse = false;
        const size_t tokens = made.prompt.size();
        generator.add(std::move(made));
        generator.run();
        return std::pair(generator.counters().steps, tokens);
    };
    const auto [whole, tokens] = steps(0);
    EXPECT_EQ(whole, (tokens + 191) / 192);
    const ChunkCuts cuts(engine().plan(), 192, 1e-9);
    uint64_t expected = 0;
    for (uint32_t at = 0; at < tokens; at = cuts.after(at)) ++expected;
    EXPECT_GT(expected, whole) << "the prompt is not deep enough";
    EXPECT_EQ(steps(1e-9).first, expected);
    EXPECT_EQ(steps(1e9).first, whole);
}

TEST_F(ServiceTest, ChunksFollowATargetWhileOthersGenerate) {
    load(192 + 3, 4, 4096);
    for (const double target : {1e-6, 1e6}) {
        Generator generator(engine(), *tokenizer_, {.chunk_rows = 192, .target_step_seconds = target});
        Result stream, prompt;
        generator.add(request(question(0), stream, 200));
        std::string long_text;
        for (int i = 0; i < 100; ++i) long_text += "The key of box " + std::to_string(i) + " is red. ";
        while (generator.counters().generated_tokens == 0) generator.step();
        EXPECT_EQ(generator.chunk_rows(), 192u) << "nothing is to be held up";
        generator.add(request(long_text, prompt, 1));
        generator.run();
        EXPECT_EQ(generator.chunk_rows(), target < 1 ? TSR_PAGE_TOKENS : 192u);
    }
}

TEST_F(ServiceTest, AStepThatFailsEndsItsOwnRequestsAlone) {
    load(64 + 3, 2, 1024);
    Result failing, later;
    bool fails = true;
    GeneratorOptions options;
    options.contain_errors = true;
    options.on_step = [&](std::span<const RequestId> requests) {
        if (!requests.empty() && std::exchange(fails, false)) fail(TSR_INTERNAL, "a kernel failed");
    };
    Generator generator(engine(), *tokenizer_, options);
    generator.add(request(question(0), failing));
    generator.step();
    generator.add(request(question(1), later));
    generator.run();
    EXPECT_EQ(failing.answer.reason, FinishReason::kFailed);
    EXPECT_EQ(failing.answer.error, "a kernel failed");
    EXPECT_NE(later.answer.reason, FinishReason::kFailed);
    EXPECT_FALSE(later.text.empty());
    EXPECT_EQ(generator.counters().failed_steps, 1u);
    EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
}

TEST_F(ServiceTest, CommonPrefixesAreComputedOnceWithinASpace) {
    load(512, 4, 4096);
    std::string common = "<｜User｜>";
    for (int i = 0; i < 30; ++i)
        common += "The key of box " + std::to_string(i) + " is " + std::to_string(i * 37 % 100) + ". ";
    std::vector<Result> found(4);
    serve({}, [&](Service& service) {
        for (size_t i = 0; i < found.size(); ++i) {
            std::promise<void> done;
            Request made =
                request(common + "What is the key of box " + std::to_string(i % 2) + "?<｜Assistant｜>", found[i], 8);
            made.space = i == 2 ? "other" : "";
            const auto finish = made.on_finish;
            made.on_finish = [&](const Answer& answer) { finish(answer), done.set_value(); };
            service.submit(std::move(made));
            done.get_future().wait();
        }
    });
    EXPECT_EQ(found[0].answer.reused_tokens, 0u);
    EXPECT_GT(found[1].answer.reused_tokens, found[1].answer.prompt_tokens - 16);
    ASSERT_TRUE(found[1].answer.difference);
    EXPECT_EQ(found[1].answer.difference->position, found[1].answer.reused_tokens);
    EXPECT_EQ(found[2].answer.reused_tokens, 0u);
    EXPECT_EQ(found[3].answer.reused_tokens, found[3].answer.prompt_tokens - 1);
    EXPECT_EQ(found[3].text, found[1].text);
}

TEST_F(ServiceTest, CancellingEndsARunningStepAndReleasesItsPages) {
    load(512, 2, 4096);
    Result result, other;
    serve({}, [&](Service& service) {
        std::promise<void> started, ended;
        std::string prompt = "<｜User｜>";
        for (int i = 0; i < 400; ++i) prompt += "box " + std::to_string(i) + " ";
        Request made = request(prompt, result, 4000);
        bool first = true;
        made.on_prompt = [&](const PromptProgress&) {
            if (std::exchange(first, false)) started.set_value();
        };
        made.on_finish = [&](const Answer& answer) { result.answer = answer, ended.set_value(); };
        const RequestId id = service.submit(std::move(made));
        started.get_future().wait();
        service.cancel(id);
        service.cancel(id + 1000);
        EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
        service.submit(request(question(1), other));
    });
    EXPECT_EQ(result.answer.reason, FinishReason::kCancelled);
    EXPECT_FALSE(other.text.empty());
}

TEST_F(ServiceTest, WhatIsTooMuchIsRefusedAtOnce) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 2;
    Service service(engine(), *tokenizer_, options);
    Result result;
    service.submit(request(question(0), result, 2));
    service.submit(request(question(1), result, 2));
    EXPECT_THROW(service.submit(request(question(2), result, 2)), QueueFull);
    Request large = request(question(0), result);
    large.prompt.assign(300, 5);
    try {
        service.submit(std::move(large));
        ADD_FAILURE() << "a prompt larger than the context was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
    }
    Request wrong = request(question(0), result);
    wrong.sampling.top_p = 7;
    EXPECT_THROW(service.submit(std::move(wrong)), Error);
    service.close();
    EXPECT_THROW(service.submit(request(question(0), result)), Error);
    service.run();
    EXPECT_EQ(service.status().counters.finished, 2u);
}

TEST_F(ServiceTest, OfSeveralRequestsAllAreTakenOrNone) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 3;
    Service service(engine(), *tokenizer_, options);
    std::vector<Result> results(5);
    const auto requests = [&](size_t count) {
        std::vector<Request> made;
        for (size_t i = 0; i < count; ++i) made.push_back(request(question(0), results[i], 1));
        return made;
    };
    std::vector<Request> wrong = requests(2);
    wrong.back().prompt.clear();
    EXPECT_THROW(service.submit(std::move(wrong)), Error);
    EXPECT_EQ(service.status().waiting.requests, 0u);
    const RequestId first = service.submit(requests(1));
    EXPECT_THROW(service.submit(requests(3)), QueueFull);
    EXPECT_EQ(service.status().waiting.requests, 1u);
    EXPECT_EQ(service.submit(requests(2)), first + 1);
    EXPECT_THROW(service.submit(requests(1)), QueueFull);
    service.close();
    service.run();
    EXPECT_EQ(service.status().counters.finished, 3u);
}

TEST_F(ServiceTest, WhereNothingWaitsThereIsRoomForAnyNumber) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 2;
    Service service(engine(), *tokenizer_, options);
    Result result;
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(request(question(0), result, 1));
    service.submit(std::move(requests));
    service.close();
    service.run();
    EXPECT_EQ(service.status().counters.finished, 5u);
}

TEST_F(ServiceTest, RequestsOnTheirWayFromTheInboxCountAsWaiting) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 3;
    Service service(engine(), *tokenizer_, options);
    Result result;
    size_t waiting = 0;
    Request cancelled = request(question(0), result, 1);
    // The engine's thread calls this when it has taken all three and told nobody yet.
    cancelled.on_finish = [&](const Answer&) {
        waiting = service.status().waiting.requests;
        EXPECT_THROW(service.submit(request(question(0), result, 1)), QueueFull);
        service.close();
    };
    service.cancel(service.submit(std::move(cancelled)));
    service.submit(request(question(0), result, 1));
    service.submit(request(question(0), result, 1));
    service.run();
    EXPECT_EQ(waiting, 3u);
}

TEST_F(ServiceTest, StoppingEndsAllRequests) {
    load(64 + 3, 4, 4096);
    std::vector<Result> found(10);
    serve({}, [&](Service& service) {
        for (size_t i = 0; i < found.size(); ++i)
            service.submit(request(question(static_cast<int>(i)), found[i], 100000));
        service.stop();
    });
    EXPECT_EQ(ended_, 10u);
    for (const Result& result : found) EXPECT_NE(result.answer.reason, FinishReason::kFailed);
}

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

// Tokens are told as their text is, and none that has a part of a stop string, wherever that begins and ends.
TEST_F(ServiceTest, TokensOfAStopStringAreNotShown) {
    load(64, 1, 1024);
    const std::string prompt = "<｜User｜>Count from 1 to 10 in French.<｜Assistant｜>";
    Result whole;
    Generator generator(engine(), *tokenizer_);
    generator.add(request(prompt, whole, 40));
    generator.run();
    ASSERT_GT(whole.text.size(), 20u);
    size_t cut = 0;
    for (size_t begin = 0; begin + 1 < whole.text.size(); ++begin) {
        for (const size_t length : {size_t{1}, size_t{3}, size_t{9}}) {
            const std::string stop = whole.text.substr(begin, length);
            const size_t end = whole.text.find(stop);
            if (end != begin) continue;
            Result result;
            std::string text, spelled;
            std::vector<Token> tokens;
            Request made = request(prompt, result, 40);
            made.stop = StopStrings(std::span(&stop, 1));
            made.probabilities = 0;
            made.on_token = [&](const ShownToken& token, const Answer&) {
                text += token.text;
                if (!token.token) return;
                tokens.push_back(*token.token);
                spelled += tokenizer_->bytes(*token.token);
                EXPECT_EQ(token.probabilities->token, *token.token);
            };
            generator.add(std::move(made));
            generator.run();
            EXPECT_EQ(result.text, whole.text.substr(0, end)) << stop;
            EXPECT_EQ(text, result.text);
            EXPECT_TRUE(text.starts_with(spelled)) << stop;
            EXPECT_LT(text.size() - spelled.size(), 12u) << "only the token in which the string begins is missing";
            cut += text.size() > spelled.size();
            EXPECT_TRUE(std::ranges::equal(
                tokens, std::span(whole.answer.tokens).subspan(whole.answer.prompt_tokens).first(tokens.size())));
        }
    }
    EXPECT_GT(cut, 0u) << "some string begins within a token";
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

TEST_F(ServiceTest, TimeEndsAnAnswerBehindALine) {
    load(64, 1, 1024);
    for (const char* allowed : {"un", "\n"}) {
        Result result;
        Generator generator(engine(), *tokenizer_);
        Request made = request(question(2), result, 30);
        made.line_seconds = 0;
        const Token token = tokenizer_->encode(allowed, {.add_special = false}).back();
        made.sampling.logit_bias = {{token, 1e6f}};
        generator.add(std::move(made));
        generator.run();
        const bool line = *allowed == '\n';
        EXPECT_EQ(result.answer.has_new_line, line);
        EXPECT_EQ(result.answer.reason, line ? FinishReason::kTimeUp : FinishReason::kLength) << allowed;
        EXPECT_EQ(result.answer.new_tokens < 30, line);
    }
}

TEST_F(ServiceTest, AllRequestsFailWithTheirError) {
    load(64, 1, 1024);
    std::vector<Result> results(3);
    Generator generator(engine(), *tokenizer_);
    for (Result& result : results) generator.add(request(question(2), result, 30));
    for (int i = 0; i < 4; ++i) generator.step();
    generator.fail_all(Error(TSR_DOES_NOT_FIT, "no memory"));
    for (const Result& result : results) {
        EXPECT_EQ(result.answer.reason, FinishReason::kFailed);
        EXPECT_EQ(result.answer.error, "no memory");
        EXPECT_EQ(result.answer.error_code, TSR_DOES_NOT_FIT);
    }
    EXPECT_FALSE(generator.step());
}

TEST_F(ServiceTest, OfAClientNoMoreRunThanItMay) {
    load(64 + 3, 4, 4096);
    std::vector<Result> found(6);
    Generator generator(engine(), *tokenizer_);
    for (size_t i = 0; i < found.size(); ++i) {
        Request made = request(question(static_cast<int>(i)), found[i], 6);
        made.client = i < 4 ? "limited" : "free";
        if (i < 4) made.client_running = 1;
        generator.add(std::move(made));
    }
    size_t both = 0;
    while (generator.step()) {
        const auto states = generator.states();
        const auto limited =
            std::ranges::count_if(states, [](const RequestState& state) { return state.client == "limited"; });
        EXPECT_LE(limited, 1);
        both += states.size() > static_cast<size_t>(limited) && limited > 0 ? 1 : 0;
    }
    EXPECT_GT(both, 0u) << "others run beside it";
    for (const Result& result : found) EXPECT_GT(result.order, 0u);
}

// The bundled model was made for 1,024 tokens. A cache for many is no permission for one.
TEST_F(ServiceTest, OneRequestGetsWhatTheModelWasMadeFor) {
    load(64, 4, 0);
    EXPECT_GT(engine().context(), 1024u) << "a page for each further sequence";
    EXPECT_EQ(engine().sequence_tokens(), 1024u);
    {
        Generator generator(engine(), *tokenizer_);
        Request long_one;
        long_one.prompt.assign(1025, 1);
        try {
            generator.check(long_one);
            ADD_FAILURE() << "a prompt past the model's own context was taken";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
            EXPECT_NE(std::string(error.what()).find("the model was made for 1024 and one request gets no more"),
                      std::string::npos)
                << error.what();
        }
        long_one.prompt.resize(1024);
        generator.check(long_one);
    }
    load(64, 4, 2048);
    EXPECT_EQ(engine().sequence_tokens(), 2048u) << "asked for with -c";
}

}  // namespace
}  // namespace tessera::session
