// A repacked model is the model: the same bits of logits, mapped or read, and the tensors that were to be packed are.
#include "core/session/repack.hpp"

#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::atomic<bool> kGoOn = false;

struct Repacked {
    Repacked(const fs::path& from, const fs::path& to, const Config& config) : hardware(Hardware::detect()) {
        apply(config, hardware);
        const Registry registry = Registry::load(config, hardware);
        const auto file = gguf::GgufFile::open(from);
        EngineOptions options;
        options.context = TSR_PAGE_TOKENS;
        const PlannedModel planned = plan_model(file, registry, hardware, options);
        made = repack(file, planned.plan, registry, to, {}, kGoOn);
    }
    Hardware hardware;
    RepackedFile made;
};

std::vector<float> logits_of(const fs::path& model, const test::TestConfig& config, bool map,
                             uint64_t* mapped = nullptr, bool pack = true) {
    EngineOptions options;
    options.context = 128;
    options.rows = 64;
    options.map_weights = map;
    options.pack_weights = pack ? PackWeights::kAtLoad : PackWeights::kNever;
    const test::LoadedModel loaded(model, options, config);
    if (mapped) *mapped = loaded.engine->plan().memory[0].mapped;
    const SequenceId sequence = loaded.engine->cache().create();
    std::vector<Token> tokens;
    for (int i = 0; i < 70; ++i) tokens.push_back((i * 37 + 11) % 200);
    const auto last = loaded.engine->prefill(sequence, tokens);
    std::vector<float> logits(last.begin(), last.end());
    const Token next = 5;
    const BatchEntry entry{sequence, {&next, 1}};
    const auto one = loaded.engine->step({&entry, 1}).front();
    logits.insert(logits.end(), one.begin(), one.end());
    return logits;
}

std::string bytes_of(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

class RepackedModels : public testing::TestWithParam<const char*> {};

TEST_P(RepackedModels, GiveTheSameBits) {
    const Config config = test::plugins_up_to("cpu_avx2");
    if (!test::runs_here("cpu_avx2")) GTEST_SKIP() << "this processor cannot run cpu_avx2";
    const test::TemporaryFolder folder;
    const fs::path from = test::source_dir() / GetParam(), to = folder.path() / "packed.gguf";
    const Repacked repacked(from, to, config);
    uint64_t packed = 0;
    for (const auto& [type, count] : repacked.made.tensors) packed += type.ends_with("_x8") ? count : 0;
    EXPECT_GT(packed, 10u);
    const auto copy = gguf::GgufFile::open(to);
    uint64_t bytes = 0;
    for (const auto& tensor : copy.tensors()) bytes += tensor.bytes;
    EXPECT_EQ(repacked.made.bytes, bytes);

    const std::vector<float> wanted = logits_of(from, config, true);
    uint64_t mapped = 0, read = 1;
    EXPECT_EQ(logits_of(to, config, true, &mapped), wanted);
    EXPECT_EQ(logits_of(to, config, false, &read), wanted);
    EXPECT_GT(mapped, repacked.made.bytes / 2);
    EXPECT_EQ(read, 0u);
    if (test::runs_here("cpu_avx512")) {
        const Config other = test::plugins_up_to("cpu_avx512");
        EXPECT_EQ(logits_of(to, other, true), logits_of(from, other, true));
    }

    // Nor does it matter whether anything is packed: --no-repack.
    for (const fs::path& file : {from, to}) {
        EXPECT_EQ(logits_of(file, config, true, &mapped, false), wanted);
        EXPECT_GT(mapped, repacked.made.bytes * 9 / 10);
    }

    // A GPU takes canonical rows: they are unpacked for it.
    test::TestConfig rig = config;
    DeviceDescription gpu;
    gpu.kind = "simulated";
    gpu.id = gpu.name = "SIM0";
    gpu.compute_capability = 860;
    gpu.memory_bytes = gpu.free_memory_bytes = 256 << 20;
    rig.gpus.push_back(gpu);
    EXPECT_EQ(logits_of(to, rig, true, &mapped), logits_of(from, rig, true, &read));
    EXPECT_EQ(mapped, read) << "weights of the GPU are used in the file";

    // Packing what is packed changes nothing.
    const Repacked again(to, folder.path() / "again.gguf", config);
    EXPECT_EQ(bytes_of(folder.path() / "again.gguf"), bytes_of(to));
}

INSTANTIATE_TEST_SUITE_P(Files, RepackedModels,
                         testing::Values("models/demo-tessera-10m.gguf", TSR_GOLDENS "/v3-groups.gguf",
                                         TSR_GOLDENS "/llama-gqa.gguf"),
                         [](const auto& instance) {
                             std::string name = fs::path(instance.param).stem();
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// The list of packed types is that of the plugin's layouts.
TEST(Repack, EveryPackedTypeIsALayout) {
    if (!test::runs_here("cpu_avx2")) GTEST_SKIP() << "this processor cannot run cpu_avx2";
    const Registry registry = Registry::load(test::plugins_up_to("cpu_avx2"), Hardware::detect());
    int packed = 0;
    for (const TypeInfo& type : known_types()) {
        if (type.id < TSR_TYPE_FIRST_PACKED || type.id >= TSR_TYPE_FIRST_PRIVATE) continue;
        const tsr_layout* layout = registry.find_layout(std::string(type.name));
        ASSERT_NE(layout, nullptr) << type.name;
        EXPECT_EQ(layout->type, type.rows_type) << type.name;
        EXPECT_EQ(layout->group_rows, type.interleaved_rows) << type.name;
        EXPECT_EQ(layout->group_bytes(layout, 512), layout->group_rows * row_bytes(type.rows_type, 512)) << type.name;
        ++packed;
    }
    EXPECT_EQ(packed, 50);
}

TEST(Repack, WhatNoPluginUnpacksIsRefusedWithItsLayout) {
    if (!test::runs_here("cpu_avx2")) GTEST_SKIP() << "this processor cannot run cpu_avx2";
    const test::TemporaryFolder folder;
    const fs::path to = folder.path() / "packed.gguf";
    const Repacked repacked(TSR_GOLDENS "/llama-gqa.gguf", to, test::plugins_up_to("cpu_avx2"));
    try {
        logits_of(to, test::plugins_up_to("reference"), true);
        FAIL() << "packed rows were read as if they were not";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), HasSubstr("f16_x8"));
        EXPECT_THAT(error.notice().advice, testing::ElementsAre(Advice{AdviceCode::kSeeWhyNotUsed, ""}));
    }
}

TEST(Repack, LeavesNothingBehindWhenStopped) {
    const test::TemporaryFolder folder;
    const fs::path from = TSR_GOLDENS "/llama-gqa.gguf", to = folder.path() / "packed.gguf";
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    const auto file = gguf::GgufFile::open(from);
    const PlannedModel planned = plan_model(file, registry, hardware, {});
    const std::atomic<bool> stop = true;
    try {
        repack(file, planned.plan, registry, to, {}, stop);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_CANCELLED);
    }
    EXPECT_TRUE(fs::is_empty(folder.path()));
    try {
        repack(file, planned.plan, registry, from, {}, kGoOn);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_THAT(error.what(), HasSubstr("the model itself"));
    }
}

}  // namespace
}  // namespace tessera
