// What runs reached of their predicted speed: what is kept of it, what for, and that no file is trusted.
#include "core/setup/earlier_runs.hpp"

#include "core/hardware/speed_file.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kKey(64, 'a'), kOther(64, 'b');

std::string key(size_t i) {
    std::string digits = fmt::format("{:064}", i);
    return digits;
}

StepComparisons compared(double prompt, double generation) {
    StepComparisons all;
    if (prompt > 0) all.prompts = {2, 1024, 1, prompt, prompt};
    if (generation > 0) all.generation = {100, 100, 1, generation, generation};
    return all;
}

class EarlierRunsFile : public testing::Test {
  protected:
    EarlierRuns read(const std::string& of = kKey) {
        said_.clear();
        return read_earlier_runs(file_, of, sink());
    }
    void add(const StepComparisons& run, const std::string& of = kKey, const std::string& model = "a model") {
        said_.clear();
        add_run(file_, of, model, run, sink());
    }
    NoticeSink sink() {
        return [this](const Notice& notice) { said_.push_back(notice.text); };
    }
    std::string text() const {
        std::ostringstream all;
        all << std::ifstream(file_).rdbuf();
        return all.str();
    }

    test::TemporaryFolder folder_;
    fs::path file_ = folder_.path() / "cache" / "tessera" / "earlier-runs.toml";
    std::vector<std::string> said_;
};

TEST_F(EarlierRunsFile, IsMadeByTheFirstRun) {
    EXPECT_FALSE(read().any());
    EXPECT_THAT(said_, IsEmpty());
    add(compared(0.81, 0.97));
    EXPECT_NEAR(read().prompts.ratio, 0.81, 1e-9);
    EXPECT_NEAR(read().generation.ratio, 0.97, 1e-9);
    EXPECT_EQ(read().prompts.runs, 1u);
    EXPECT_FALSE(read(kOther).any());
    EXPECT_THAT(said_, IsEmpty());
}

TEST_F(EarlierRunsFile, KindsOfStepsCountAlone) {
    add(compared(0, 0.9));
    EXPECT_EQ(read().prompts.runs, 0u);
    add(compared(0.5, 0));
    EXPECT_NEAR(read().prompts.ratio, 0.5, 1e-9);
    EXPECT_NEAR(read().generation.ratio, 0.9, 1e-9);
    EXPECT_EQ(read().generation.runs, 1u);
}

TEST_F(EarlierRunsFile, ARunOfAFewTokensIsNotKept) {
    StepComparisons few = compared(0, 0.9);
    few.generation.steps = few.generation.tokens = 7;
    add(few);
    EXPECT_FALSE(fs::exists(file_));
    few.generation.steps = few.generation.tokens = 8;
    add(few);
    EXPECT_TRUE(fs::exists(file_));
}

TEST_F(EarlierRunsFile, TheRatioIsTheMeanAndThenFollowsWhatTheMachineDoes) {
    add(compared(0, 0.8));
    add(compared(0, 1.0));
    EXPECT_NEAR(read().generation.ratio, 0.9, 1e-3);
    EXPECT_EQ(read().generation.runs, 2u);
    for (int i = 0; i < 40; ++i) add(compared(0, 0.5));
    EXPECT_NEAR(read().generation.ratio, 0.5, 0.01);
    EXPECT_EQ(read().generation.runs, 42u);
}

TEST_F(EarlierRunsFile, StaysSmallAndForgetsWhatWasNotRunForLongest) {
    for (size_t i = 0; i < 128; ++i) add(compared(0, 0.9), key(i));
    add(compared(0, 0.9), key(0));
    add(compared(0, 0.9), key(128));
    EXPECT_TRUE(read(key(0)).any());
    EXPECT_FALSE(read(key(1)).any());
    EXPECT_TRUE(read(key(2)).any());
    EXPECT_TRUE(read(key(128)).any());
    EXPECT_LT(fs::file_size(file_), 64u << 10);
}

TEST_F(EarlierRunsFile, WhatAModelCallsItselfBreaksNothing) {
    add(compared(0, 0.9), kKey, "a \"name\"\n[[runs]] \\ \x1b[31m \xff" + std::string(5000, 'x'));
    EXPECT_TRUE(read().any());
    EXPECT_THAT(said_, IsEmpty());
}

TEST_F(EarlierRunsFile, NoFieldIsTrusted) {
    add(compared(0.81, 0.97));
    const std::string good = text();
    const auto with = [&](const std::string& from, const std::string& to) {
        std::string bad = good;
        const size_t at = bad.find(from);
        EXPECT_NE(at, std::string::npos) << from;
        return bad.replace(at, from.size(), to);
    };
    const std::string entry = good.substr(good.find("\n[[runs]]"));
    std::string many = good.substr(0, good.find("\n[[runs]]"));
    for (size_t i = 0; i < 129; ++i)
        many += fmt::format("[[runs]]\nkey = '{}'\nmodel = ''\ngeneration = 900\ngeneration_runs = 1\n", key(i));
    const std::vector<std::string> all = {
        "",
        "no toml",
        std::string("\0\0\0\0", 4),
        good.substr(0, good.size() / 2),
        good + entry,
        many,
        with("version = 1", "version = 2"),
        with("version = 1\n", ""),
        with(kKey, "aa"),
        with(kKey, std::string(64, 'g')),
        with("\"a model\"", "7"),
        with("prompt = 810", "prompt = 0"),
        with("prompt = 810", "prompt = -810"),
        with("prompt = 810", "prompt = 0.81"),
        with("prompt = 810", "prompt = nan"),
        with("prompt = 810", "prompt = 99999999999999999999"),
        with("prompt = 810", "prompt = 1000001"),
        with("prompt = 810\n", ""),
        with("prompt_runs = 1", "prompt_runs = 0"),
        with("prompt_runs = 1", "prompt_runs = 1000001"),
        with("prompt_runs = 1\n", ""),
        with("prompt_runs = 1", "prompt_runs = 1\nfurther = 1"),
        with("version = 1", "version = 1\nfurther = 1"),
    };
    for (const std::string& bad : all) {
        SCOPED_TRACE(bad.substr(0, 400));
        folder_.write("cache/tessera/earlier-runs.toml", bad);
        EXPECT_FALSE(read().any());
        ASSERT_EQ(said_.size(), 1u);
        EXPECT_THAT(said_.front(), HasSubstr(file_.string()));
        EXPECT_THAT(said_.front(), HasSubstr("left out"));
        add(compared(0, 0.9));
        EXPECT_EQ(said_.size(), 1u);
        EXPECT_TRUE(read().any());
        EXPECT_THAT(said_, IsEmpty()) << "it was written anew";
    }
}

TEST_F(EarlierRunsFile, WhereNothingCanBeWrittenNothingIsSaid) {
    folder_.write("cache", "a file in the folder's place");
    add(compared(0.8, 0.9));
    EXPECT_FALSE(read().any());
    EXPECT_THAT(said_, IsEmpty());
    file_ = folder_.path() / "folder";
    fs::create_directories(file_);
    add(compared(0.8, 0.9));
    EXPECT_FALSE(read().any());
}

class PredictionKey : public testing::Test {
  protected:
    std::string key(const std::string& golden, EngineOptions options = {}, uint32_t threads = 1,
                    const char* off = "none", double clock = 2.8e9) {
        Hardware hardware = Hardware::detect();
        Config config = test::plugins_without({off});
        config.threads = threads;
        apply(config, hardware);
        hardware.set_speed(clock, 18e9, 160e9);
        const Registry registry = Registry::load(config, hardware);
        const gguf::GgufFile file = gguf::GgufFile::open(std::filesystem::path(TSR_GOLDENS) / golden);
        const PlannedModel planned = plan_model(file, registry, hardware, options);
        return prediction_key(file, planned.info, planned.plan, registry);
    }
};

TEST_F(PredictionKey, IsOfModelMachineAndKernelsNotOfTheContext) {
    const std::string usual = key("v3-groups.gguf");
    EXPECT_EQ(usual.size(), 64u);
    EXPECT_EQ(key("v3-groups.gguf"), usual);
    EngineOptions options;
    options.context = 1024;
    options.sequences = 3;
    options.rows = 514;
    EXPECT_EQ(key("v3-groups.gguf", options), usual);
    EXPECT_NE(key("v3-ungrouped.gguf"), usual);
    EXPECT_NE(key("v3-groups.gguf", {}, 2), usual);
    EXPECT_NE(key("v3-groups.gguf", {}, 1, "none", 2.9e9), usual);
    options = {};
    options.rows = 64;
    EXPECT_NE(key("v3-groups.gguf", options), usual);
    options = {};
    options.cache_type_k = options.cache_type_v = TSR_TYPE_BF16;
    EXPECT_NE(key("v3-groups.gguf", options), usual);
    if (test::runs_here("cpu_avx512")) {
        EXPECT_NE(key("v3-groups.gguf", {}, 1, "cpu_avx512"), usual);
    }
}

// What a card computed says nothing about the memory of the host.
TEST(GenerationSpeed, IsOfTheCpuOnlyWhereTheCpuComputedAllOfIt) {
    const test::TemporaryFolder folder;
    DeviceDescription cpu;
    cpu.name = "a processor";
    cpu.threads = 2;
    const fs::path file = folder.path() / "speed.toml";
    write_speed(file, cpu, {{3e9, 3e9, 6e9, false}, std::chrono::system_clock::now()});
    const auto is_outrun = [&] { return read_speed(file, cpu).value().is_outrun; };
    Hardware hardware = Hardware::detect();
    hardware.keep_gpus({});
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    const gguf::GgufFile model = gguf::GgufFile::open(TSR_GOLDENS "/v3-groups.gguf");
    PlannedModel planned = plan_model(model, registry, hardware, {});
    Plan& plan = planned.plan;
    ASSERT_GT(plan.nodes.size(), 1u);
    plan.nodes[1].device = 1;
    const ComparedSteps fast = compared(0, 4).generation;
    note_generation_speed(file, cpu, plan, fast);
    EXPECT_FALSE(is_outrun()) << "one node is on a card";
    plan.nodes[1].device = 0;
    note_generation_speed(file, cpu, plan, compared(0, 1.1).generation);
    EXPECT_FALSE(is_outrun()) << "as predicted";
    ComparedSteps few = fast;
    few.tokens = 1;
    note_generation_speed(file, cpu, plan, few);
    EXPECT_FALSE(is_outrun()) << "too few tokens";
    note_generation_speed(file, cpu, plan, fast);
    EXPECT_TRUE(is_outrun());
}

}  // namespace
}  // namespace tessera
