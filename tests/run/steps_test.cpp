// Steps on asynchronous devices: work put on queues, steps in flight, and how they end.
#include "core/base/error.hpp"
#include "testing/simulated/simulated_failures.h"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace tessera {
namespace {

using Logits = std::vector<float>;

DeviceDescription gpu(const std::string& id) {
    DeviceDescription device;
    device.kind = "simulated";
    device.id = id;
    device.name = "simulated";
    device.compute_capability = 860;
    device.memory_bytes = device.free_memory_bytes = 256 << 20;
    return device;
}

class Steps : public testing::Test {
  protected:
    void load(std::vector<const char*> gpus, std::vector<TensorRule> rules, uint32_t expand_from = 20) {
        test::TestConfig config = test::plugins_without({"cpu_avx2", "cpu_avx512"});
        for (const char* id : gpus) config.gpus.push_back(gpu(id));
        EngineOptions options;
        options.context = 512;
        options.sequences = 4;
        options.rows = 32;
        options.expand_from = expand_from;
        options.check_order = true;
        options.placement.gpu_layers = gpus.empty() ? 0 : 99;
        options.placement.rules = std::move(rules);
        model_ = std::make_unique<test::LoadedModel>(TSR_GOLDENS "/v3-groups.gguf", options, config);
        for (const char* id : gpus) failures().reset(id);
    }

    Engine& engine() { return *model_->engine; }

    const tsr_simulated_failures& failures() {
        const tsr_plugin* table = model_->registry->find_plugin("simulated")->table;
        return *static_cast<const tsr_simulated_failures*>(table->get_extension(table, TSR_SIMULATED_FAILURES));
    }
    uint64_t count(const char* id, tsr_simulated_operation operation) {
        return failures().count(id, operation, nullptr);
    }

    std::vector<Token> tokens(size_t count, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<Token> list(count);
        for (Token& token : list) token = static_cast<Token>(random() % engine().info().vocabulary);
        return list;
    }

    Logits prefill(const std::vector<Token>& prompt) {
        const auto row = engine().prefill(engine().cache().create(), prompt);
        return {row.begin(), row.end()};
    }

    std::unique_ptr<test::LoadedModel> model_;
};

void expect_close(const Logits& got, const Logits& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    float largest = 0;
    for (const float value : wanted) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], 2e-3 * largest) << i;
}

TEST_F(Steps, AGeneratedTokenOnOneCardIsOneReplayAndACopyEachWay) {
    load({"SIM0"}, {{".*", "SIM0"}});
    const std::vector<Token> prompt = tokens(10, 1);
    const SequenceId sequence = engine().cache().create();
    engine().prefill(sequence, prompt);
    failures().reset("SIM0");
    for (int i = 0; i < 3; ++i) {
        const BatchEntry entry{sequence, std::span(prompt).first(1)};
        engine().step({&entry, 1});
    }
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_REPLAY), 3u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_ENQUEUE), 0u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_UPLOAD), 3u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_DOWNLOAD), 3u);
    EXPECT_GT(count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL), 30u);
}

// The same where single rows count as prompts.
TEST_F(Steps, AGeneratedTokenIsOneReplayWherePromptsBeginAtOneRow) {
    load({"SIM0"}, {{".*", "SIM0"}}, 1);
    const std::vector<Token> prompt = tokens(10, 1);
    const SequenceId sequence = engine().cache().create();
    engine().prefill(sequence, prompt);
    failures().reset("SIM0");
    const BatchEntry entry{sequence, std::span(prompt).first(1)};
    engine().step({&entry, 1});
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_REPLAY), 1u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_ENQUEUE), 0u);
}

TEST_F(Steps, RowsAreRoundedUpToARecordedBucket) {
    load({"SIM0"}, {{".*", "SIM0"}});
    std::vector<SequenceId> sequences;
    const std::vector<Token> prompt = tokens(10, 2);
    for (int i = 0; i < 3; ++i) {
        sequences.push_back(engine().cache().create());
        engine().prefill(sequences.back(), prompt);
    }
    failures().reset("SIM0");
    std::vector<BatchEntry> entries;
    for (const SequenceId sequence : sequences) entries.push_back({sequence, std::span(prompt).first(1)});
    const auto rows = engine().step(entries);
    ASSERT_EQ(rows.size(), 3u);
    for (const auto& row : rows) EXPECT_TRUE(std::ranges::equal(row, rows.front()));
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_REPLAY), 1u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_ENQUEUE), 0u);
}

TEST_F(Steps, NothingIsMadeOnADeviceAfterLoading) {
    load({"SIM0", "SIM1"}, {{"blk\\.[01]\\.|token_embd", "SIM0"}, {".*", "SIM1"}});
    const uint64_t bytes = failures().allocated_bytes("SIM0");
    prefill(tokens(200, 3));
    prefill(tokens(3, 4));
    for (const char* id : {"SIM0", "SIM1"}) {
        for (const tsr_simulated_operation operation :
             {TSR_SIMULATED_ALLOCATE, TSR_SIMULATED_ALLOCATE_PINNED, TSR_SIMULATED_REGISTER_HOST,
              TSR_SIMULATED_CREATE_QUEUE, TSR_SIMULATED_CREATE_EVENT, TSR_SIMULATED_BEGIN_RECORDING,
              TSR_SIMULATED_PREPARE}) {
            EXPECT_EQ(count(id, operation), 0u) << id << ", operation " << operation;
        }
    }
    EXPECT_EQ(failures().allocated_bytes("SIM0"), bytes);
}

TEST_F(Steps, ChunksOfAPromptAreUnderWayOnSeveralCardsAtOnce) {
    load({}, {});
    const std::vector<Token> prompt = tokens(230, 5);
    const Logits wanted = prefill(prompt);
    load({"SIM0", "SIM1"}, {{"blk\\.[01]\\.|token_embd", "SIM0"}, {".*", "SIM1"}});
    EXPECT_EQ(engine().plan().step.slots, 3u);
    // Eight chunks. The host submits the third before it has waited for anything.
    uint64_t waits_before_third = UINT64_MAX;
    const auto row = engine().prefill(engine().cache().create(), prompt, [&](size_t done, size_t) {
        if (done == 96)
            waits_before_third = count("SIM0", TSR_SIMULATED_WAIT_EVENT) + count("SIM1", TSR_SIMULATED_WAIT_EVENT);
        return true;
    });
    EXPECT_EQ(waits_before_third, 0u);
    expect_close({row.begin(), row.end()}, wanted);
}

TEST_F(Steps, CardsThatReachEachOtherCopyDirectly) {
    load({"SIM0", "SIM1"}, {{"blk\\.[01]\\.|token_embd", "SIM0"}, {".*", "SIM1"}});
    prefill(tokens(20, 6));
    EXPECT_GT(count("SIM1", TSR_SIMULATED_COPY_FROM_PEER), 0u);
    EXPECT_EQ(count("SIM0", TSR_SIMULATED_DOWNLOAD), 0u);
}

TEST_F(Steps, ACancelledPromptLeavesEverythingAsItWas) {
    for (const bool card : {false, true}) {
        load(card ? std::vector{"SIM0"} : std::vector<const char*>{},
             card ? std::vector<TensorRule>{{"exps", "CPU"}, {".*", "SIM0"}} : std::vector<TensorRule>{});
        const std::vector<Token> prompt = tokens(200, 7), question = tokens(30, 8);
        const Logits wanted = prefill(question);
        const SequenceId sequence = engine().cache().create();
        std::atomic<bool> started{false};
        std::thread canceller([&] {
            while (!started) std::this_thread::yield();
            for (int i = 0; i < 2000; ++i) {
                engine().cancel();
                std::this_thread::sleep_for(std::chrono::microseconds(100));
            }
        });
        try {
            engine().prefill(sequence, prompt, [&](size_t, size_t) { return started = true; });
            ADD_FAILURE() << "the prompt was not cancelled";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_CANCELLED) << error.what();
        }
        canceller.join();
        EXPECT_EQ(engine().cache().length(sequence), 0u);
        engine().cache().remove(sequence);
        EXPECT_EQ(prefill(question), wanted);
    }
}

}  // namespace
}  // namespace tessera
