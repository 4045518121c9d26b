// Ctrl-C within a step.
#include "apps/tessera/interrupt.hpp"

#include "apps/tessera/generating.hpp"
#include "apps/tessera/measuring.hpp"
#include "core/base/error.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <vector>

namespace tessera::app {
namespace {

// All of the prompt is one step, which one thread computes.
class InterruptTest : public testing::Test {
  protected:
    static EngineOptions options() {
        EngineOptions options;
        options.context = 1024;
        options.rows = 1024;
        options.threads = options.prompt_threads = 1;
        return options;
    }

    test::LoadedModel model_{TSR_TEST_MODEL, options(), test::plugins_without({})};
    Engine& engine_ = *model_.engine;
};

TEST_F(InterruptTest, ThePromptUnderWayEndsAndIsNotCounted) {
    const text::Tokenizer tokenizer(text::vocabulary_from_gguf(engine_.file().metadata()));
    session::Generator generator(engine_, tokenizer);
    session::Answer answer;
    const auto ask = [&] {
        session::Request request;
        request.prompt.assign(1000, 7);
        request.max_new_tokens = 2;
        request.on_finish = [&](const session::Answer& made) { answer = made; };
        generator.add(std::move(request));
        PromptProgress progress(generator, 1000, engine_.max_rows());
        InterruptScope interrupt;
        if (answer.id == 0) raise(SIGINT);
        run(generator, engine_, progress, interrupt.flag());
    };
    ask();
    EXPECT_EQ(answer.reason, session::FinishReason::kCancelled);
    EXPECT_EQ(generator.timings().prompt_tokens, 0u);
    // What follows is not concerned.
    ask();
    EXPECT_NE(answer.reason, session::FinishReason::kCancelled);
    EXPECT_EQ(generator.timings().prompt_tokens, 1000u);
}

TEST_F(InterruptTest, MeasurementsEnd) {
    const InterruptScope interrupt;
    SpeedMeter meter(engine_, interrupt.flag());
    raise(SIGINT);
    try {
        meter.prompt(0, 1000);
        FAIL() << "it was measured to the end";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_CANCELLED);
    }
}

}  // namespace
}  // namespace tessera::app
