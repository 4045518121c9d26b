// Experts on the host that steps of many rows compute on a simulated card, part by part.
#include "core/plan/streaming.hpp"

#include "core/plan/fit.hpp"
#include "tests/run/simulated_rig.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

namespace tessera {
namespace {

using test::simulated_failures;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kCard = "SIM0";
constexpr uint32_t kRowsFrom = 8;

EngineOptions options_of(bool stream, uint64_t wave_bytes = 1, PackWeights pack = PackWeights::kAtLoad) {
    EngineOptions options;
    options.context = 256;
    options.rows = 48;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{"exps", "CPU"}};
    options.stream_experts = stream;
    options.stream_rows_from = kRowsFrom;
    options.stream_wave_bytes = wave_bytes;  // 1: an expert at a time
    options.pack_weights = pack;
    options.check_order = true;
    return options;
}

test::TestConfig config() {
    test::TestConfig config = test::plugins_without({});
    config.gpus.push_back(test::simulated_card(0));
    config.gpus.front().link = "pcie4x16";
    config.gpus.front().link_bandwidth = 20e9;
    return config;
}

// A prompt of several steps, a short one, generation.
std::vector<float> run(Engine& engine) {
    std::vector<float> all;
    std::mt19937 random(3);
    const SequenceId sequence = engine.cache().create();
    for (const size_t rows : {48, 48, 17, 8, 7, 1, 1})
        test::add_step(engine, {{sequence, test::random_tokens(engine, random, rows)}}, all);
    return all;
}

struct Case {
    const char* model;
    PackWeights pack;  // as the kernels of the host want them
    uint64_t wave_bytes;
};

class Streaming : public testing::TestWithParam<Case> {};

TEST_P(Streaming, LogitsAreThoseWithoutIt) {
    const auto& [model, pack, wave_bytes] = GetParam();
    test::LoadedModel without(test::golden(model), options_of(false, 1, pack), config());
    EXPECT_TRUE(without.engine->plan().streamed.empty());
    const std::vector<float> wanted = run(*without.engine);

    const test::CardOptions card(kCard, TSR_SIMULATED_OLDEST_LAST);
    test::LoadedModel streaming(test::golden(model), options_of(true, wave_bytes, pack), config());
    const Plan& plan = streaming.engine->plan();
    ASSERT_FALSE(plan.streamed.empty());
    for (const StreamedNode& streamed : plan.streamed) {
        EXPECT_EQ(streamed.rows_from, kRowsFrom);
        EXPECT_EQ(plan.devices[streamed.device]->id, std::string(kCard));
        EXPECT_EQ(streamed.experts_at_once == 1, wave_bytes == 1);
    }
    EXPECT_GT(plan.memory[0].streaming, 0u);
    EXPECT_GT(plan.memory[1].streaming, 0u);
    const uint64_t before = simulated_failures().count(kCard, TSR_SIMULATED_UPLOAD, nullptr);
    const std::vector<float> got = run(*streaming.engine);
    EXPECT_GT(simulated_failures().count(kCard, TSR_SIMULATED_UPLOAD, nullptr), before + plan.streamed.size());
    test::expect_close(got, wanted, 2e-3);
}

std::string name_of(const testing::TestParamInfo<Case>& test) {
    const char* const packed[] = {"packed", "deferred", "canonical"};
    const Case& c = test.param;
    return std::string(c.model).substr(0, 2) + "_" + packed[static_cast<size_t>(c.pack)] +
           (c.wave_bytes == 1 ? "_one" : "_all");
}

INSTANTIATE_TEST_SUITE_P(Models, Streaming,
                         testing::Values(Case{"v3-groups.gguf", PackWeights::kNever, 1},
                                         Case{"v3-groups.gguf", PackWeights::kAtLoad, 1},
                                         Case{"v3-groups.gguf", PackWeights::kBetweenSteps, 1},
                                         Case{"v3-groups.gguf", PackWeights::kAtLoad, 64 << 20},
                                         Case{"qwen3moe-norm.gguf", PackWeights::kAtLoad, 1},
                                         // Biases, another activation.
                                         Case{"gpt-oss.gguf", PackWeights::kNever, 1},
                                         Case{"gpt-oss.gguf", PackWeights::kAtLoad, 64 << 20}),
                         name_of);

// Each operation of a step that streams fails in turn: the step is lost, the next ones are right.
TEST(StreamingFailures, AreToldAndLeaveTheEngineUsable) {
    const test::CardOptions card(kCard, TSR_SIMULATED_ON_WAIT);
    test::LoadedModel loaded(test::golden("v3-groups.gguf"), options_of(true), config());
    Engine& engine = *loaded.engine;
    std::mt19937 random(5);
    const std::vector<Token> tokens = test::random_tokens(engine, random, 20);
    const auto logits = [&] {
        std::vector<float> all;
        const SequenceId sequence = engine.cache().create();
        test::add_step(engine, {{sequence, tokens}}, all);
        engine.cache().remove(sequence);
        return all;
    };
    const std::vector<float> wanted = logits();
    size_t streamed = 0;
    for (const tsr_simulated_operation operation :
         {TSR_SIMULATED_UPLOAD, TSR_SIMULATED_EXECUTE_COPY, TSR_SIMULATED_EXECUTE_KERNEL}) {
        simulated_failures().reset(kCard);
        logits();
        const uint64_t operations = simulated_failures().count(kCard, operation, nullptr);
        for (uint64_t at = 0; at < operations; at += 1 + operations / 12) {
            SCOPED_TRACE(testing::Message() << "operation " << operation << " at " << at << " of " << operations);
            simulated_failures().reset(kCard);
            simulated_failures().fail(kCard, operation, nullptr, at, 1);
            std::optional<Error> failed;
            const SequenceId sequence = engine.cache().create();
            try {
                std::vector<float> all;
                test::add_step(engine, {{sequence, tokens}}, all);
            } catch (const Error& error) {
                failed = error;
            }
            engine.cache().remove(sequence);
            ASSERT_TRUE(failed);
            EXPECT_THAT(failed->what(), AllOf(HasSubstr(kCard), HasSubstr("injected")));
            streamed += std::string(failed->what()).find("its experts copied to SIM0") != std::string::npos;
            simulated_failures().reset(kCard);
            EXPECT_EQ(logits(), wanted);
        }
    }
    EXPECT_GT(streamed, 5u);
}

TEST(StreamingFailures, OfPreparingAKernelNameTheNode) {
    const test::CardOptions card(kCard, TSR_SIMULATED_ON_WAIT);
    const auto load = [] { test::LoadedModel(test::golden("v3-groups.gguf"), options_of(true), config()); };
    load();
    // Kernels of parts are prepared last.
    const uint64_t last = simulated_failures().count(kCard, TSR_SIMULATED_PREPARE, nullptr) - 1;
    simulated_failures().fail(kCard, TSR_SIMULATED_PREPARE, nullptr, last, 1);
    try {
        load();
        FAIL() << "it was loaded";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::ContainsRegex("\\(moe_ffn, layer [0-9]+\\), its experts copied to SIM0: "));
        EXPECT_THAT(error.what(), HasSubstr("injected"));
    }
}

// Streaming takes what is left: everything else lies where it would without it, and where nothing is left there is
// none.
TEST(StreamingPlan, TakesOnlyWhatIsLeft) {
    const gguf::GgufFile file = gguf::GgufFile::open(test::golden("v3-groups.gguf"));
    const auto planned = [&](uint64_t memory, bool stream) {
        test::TestConfig card = config();
        if (memory) card.gpus.front().memory_bytes = card.gpus.front().free_memory_bytes = memory;
        Hardware hardware = Hardware::detect();
        apply(card, hardware);
        const Registry registry = Registry::load(card, hardware);
        const Plan plan = plan_model(file, registry, hardware, options_of(stream)).plan;
        struct Taken {
            std::vector<std::string> rules;
            uint64_t others, streaming;
            bool fits;
        };
        const DeviceMemory& taken = plan.memory[1];
        return Taken{plan.rules, taken.allocated() - taken.streaming, taken.streaming,
                     taken.allocated() <= usable_bytes(plan.devices, 1)};
    };
    const auto roomy = planned(0, true);
    ASSERT_GT(roomy.streaming, 0u);
    bool without = false, with = false;
    for (uint64_t memory = 64 << 10; memory < 2 * (roomy.others + roomy.streaming); memory += 16 << 10) {
        const auto streaming = planned(memory, true), plain = planned(memory, false);
        EXPECT_EQ(streaming.rules, plain.rules) << memory;
        EXPECT_EQ(streaming.others, plain.others) << memory;
        EXPECT_EQ(streaming.fits, plain.fits) << memory;
        without |= streaming.fits && streaming.streaming == 0;
        with |= streaming.streaming > 0;
    }
    EXPECT_TRUE(without);
    EXPECT_TRUE(with);
}

}  // namespace
}  // namespace tessera
