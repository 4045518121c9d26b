// Whose turn it is among many clients of one engine, and how long the others wait.
#include "tests/session/service_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::session {
namespace {

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

}  // namespace
}  // namespace tessera::session
