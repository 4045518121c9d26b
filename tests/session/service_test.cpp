// Many clients of one engine: each gets what it would get alone, and prefixes and pages are shared.
#include "core/base/error.hpp"
#include "tests/session/service_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>

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
