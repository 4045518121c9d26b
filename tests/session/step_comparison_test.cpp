// Which steps are compared with the plan's prediction, and what comes of it.
#include "core/session/step_comparison.hpp"

#include "core/plan/predict.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <memory>
#include <vector>

namespace tessera {
namespace {

constexpr uint32_t kRows = 128;

class StepComparisonTest : public testing::Test {
  protected:
    void load(EngineOptions options = {}) {
        options.context = 1024;
        options.rows = kRows;
        options.sequences = 2;
        Config config = test::plugins_without({});
        config.threads = 1;  // else what others do on this machine decides how many take part
        model_ = std::make_unique<test::LoadedModel>(TSR_GOLDENS "/v3-groups.gguf", options, config);
        sequence_ = engine().cache().create();
    }
    Engine& engine() { return *model_->engine; }
    const Plan& plan() { return engine().plan(); }
    void step(uint32_t rows, bool all_outputs = false) {
        const std::vector<Token> tokens(rows, 5);
        const BatchEntry entry{sequence_, tokens, true, all_outputs};
        engine().step({&entry, 1});
    }
    // Steps that others on this machine disturb do not count.
    template <typename Work, typename Done>
    void until(const Work& work, const Done& done) {
        for (int i = 0; i < 10'000 && !done(); ++i) {
            if (engine().cache().length(sequence_) > 512) engine().cache().truncate(sequence_, 0);
            work();
        }
        EXPECT_TRUE(done());
    }
    uint64_t prompts() { return engine().compared().prompts.steps; }
    uint64_t generation() { return engine().compared().generation.steps; }

    std::unique_ptr<test::LoadedModel> model_;
    SequenceId sequence_ = 0;
};

TEST_F(StepComparisonTest, StepsOfOneSequenceCountButTheFirstOfEachKind) {
    load();
    step(kRows);
    step(1);
    EXPECT_EQ(prompts(), 0u);
    EXPECT_EQ(generation(), 0u);
    until([&] { step(kRows); }, [&] { return prompts() > 0; });
    EXPECT_EQ(engine().compared().prompts.tokens, kRows);
    until([&] { step(32); }, [&] { return prompts() > 1; });
    EXPECT_EQ(engine().compared().prompts.tokens, kRows + 32u);
    EXPECT_EQ(generation(), 0u);
    until([&] { step(1); }, [&] { return generation() > 0; });
    const StepComparisons compared = engine().compared();
    EXPECT_EQ(compared.prompts.steps, 2u);
    EXPECT_GT(compared.generation.measured_seconds, 0);
    const double predicted = step_time(plan(), 1, engine().cache().length(sequence_) - 1, false).seconds;
    EXPECT_NEAR(compared.generation.predicted_seconds, predicted, 1e-6 * predicted);
    EXPECT_NEAR(compared.generation.ratio, predicted / compared.generation.measured_seconds, 1e-9);
}

// Workers of another process on the same processor take half of the time.
TEST_F(StepComparisonTest, StepsThatOthersDisturbDoNotCount) {
    cpu_set_t all, first;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&first);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&first) == 0; ++i) {
        if (CPU_ISSET(i, &all)) CPU_SET(i, &first);
    }
    ASSERT_EQ(sched_setaffinity(0, sizeof first, &first), 0);
    load();
    std::vector<pid_t> others(8);
    for (pid_t& other : others) {
        if ((other = fork()) == 0) {
            for (;;) asm volatile("");
        }
    }
    uint64_t taken = 0;
    const auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::steady_clock::now() - begin; };
    // The first never counts; how often a step is interrupted is the scheduler's choice.
    while (passed() < std::chrono::seconds(1) || (prompts() + 1 >= taken && passed() < std::chrono::seconds(20))) {
        engine().cache().truncate(sequence_, 0);
        step(kRows);
        ++taken;
    }
    for (const pid_t other : others) {
        kill(other, SIGKILL);
        waitpid(other, nullptr, 0);
    }
    EXPECT_LT(prompts() + 1, taken);
    sched_setaffinity(0, sizeof all, &all);
}

TEST_F(StepComparisonTest, WhatIsNotPredictedDoesNotCount) {
    load();
    const SequenceId other = engine().cache().create();
    const std::vector<Token> tokens(64, 5);
    const auto both = [&](uint32_t rows) {
        const BatchEntry entries[] = {{sequence_, std::span(tokens).first(rows)}, {other, std::span(tokens).first(1)}};
        engine().step(entries);
    };
    for (int i = 0; i < 3; ++i) {
        both(1);
        both(64);
        step(31);  // neither a token nor many rows
    }
    EXPECT_EQ(prompts() + generation(), 0u);
    engine().cache().remove(other);
    engine().cache().truncate(sequence_, 0);
    EngineOptions options;
    options.output_rows = 64;
    load(options);
    for (int i = 0; i < 3; ++i) step(64, true);
    EXPECT_EQ(prompts(), 0u) << "the plan predicts steps with one output";
}

TEST_F(StepComparisonTest, FewerThreadsThanPlannedForDoNotCount) {
    Config config = test::plugins_without({});
    config.threads = 2;
    EngineOptions options;
    options.threads = 1;
    model_ = std::make_unique<test::LoadedModel>(TSR_GOLDENS "/v3-groups.gguf", options, config);
    sequence_ = engine().cache().create();
    for (int i = 0; i < 3; ++i) step(1);
    EXPECT_EQ(generation(), 0u);
}

TEST_F(StepComparisonTest, StepsBeforeAllWeightsArePackedDoNotCount) {
    EngineOptions options;
    options.pack_weights = PackWeights::kBetweenSteps;
    load(options);
    ASSERT_GT(engine().packing().total_bytes, 0u);
    uint32_t steps = 0;
    while (engine().packing().done_bytes < engine().packing().total_bytes) {
        step(1);
        ASSERT_LT(++steps, 1000u);
    }
    EXPECT_EQ(generation(), 0u);
    step(1);
    EXPECT_EQ(generation(), 0u) << "the first";
    until([&] { step(1); }, [&] { return generation() == 1; });
}

TEST_F(StepComparisonTest, ASingleStepThatWasHeldUpDoesNotMoveTheRatio) {
    load();
    StepComparison comparison(plan(), plan().prompt_rows_from);
    const auto token = [&](double ratio) { comparison.finished(1, 0, step_time(plan(), 1, 0, false).seconds / ratio); };
    token(0.5);  // the first
    for (int i = 0; i < 200; ++i) token(i % 10 == 0 ? 0.001 : 0.9);
    const ComparedSteps compared = comparison.compared().generation;
    EXPECT_EQ(compared.steps, 200u);
    EXPECT_NEAR(compared.ratio, 0.9, 1e-9);
    // It follows what the machine does.
    for (int i = 0; i < 64; ++i) token(1.1);
    EXPECT_NEAR(comparison.compared().generation.ratio, 1.1, 1e-9);
    EXPECT_EQ(comparison.compared().prompts.ratio, 0);
}

TEST_F(StepComparisonTest, PredictionsAreThoseOfThePlan) {
    load();
    for (const uint32_t rows : {32u, 50u, 97u, kRows}) {
        for (const uint32_t depth : {0u, 300u, plan().options.max_tokens}) {
            StepComparison comparison(plan(), plan().prompt_rows_from);
            comparison.finished(rows, depth, 1);
            comparison.finished(rows, depth, 1);
            const double predicted = step_time(plan(), rows, depth, rows >= plan().prompt_rows_from).seconds;
            EXPECT_NEAR(comparison.compared().prompts.predicted_seconds, predicted, 1e-3 * predicted)
                << rows << " rows after " << depth;
        }
    }
}

}  // namespace
}  // namespace tessera
