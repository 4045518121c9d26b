// Plans from headers alone: placement, refusals, and messages.
#include "core/base/error.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/plan/fit.hpp"
#include "core/session/engine.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace tessera {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

DeviceDescription simulated_gpu(const char* id, uint32_t compute_capability, uint64_t memory) {
    DeviceDescription gpu;
    gpu.kind = "simulated";
    gpu.id = id;
    gpu.name = "a simulated GPU";
    gpu.compute_capability = compute_capability;
    gpu.memory_bytes = gpu.free_memory_bytes = memory;
    return gpu;
}

class PlanTest : public testing::Test {
  protected:
    PlannedModel plan(const char* model, const EngineOptions& options,
                      std::initializer_list<DeviceDescription> gpus = {}) {
        hardware = std::make_unique<Hardware>(Hardware::detect());
        for (const DeviceDescription& gpu : gpus) hardware->add(gpu);
        registry = std::make_unique<Registry>(Registry::load(test::plugins_without({}), *hardware));
        file = std::make_unique<gguf::GgufFile>(gguf::GgufFile::open(std::filesystem::path(TSR_GOLDENS) / model));
        return plan_model(*file, *registry, *hardware, options);
    }

    std::string refusal(const char* model, const EngineOptions& options,
                        std::initializer_list<DeviceDescription> gpus = {}) {
        try {
            check_fit(plan(model, options, gpus).plan);
        } catch (const Error& error) {
            return std::string(code_name(error.code())) + ": " + error.what();
        }
        return "";
    }

    std::unique_ptr<Hardware> hardware;
    std::unique_ptr<Registry> registry;
    std::unique_ptr<gguf::GgufFile> file;
};

std::vector<std::string> lowerings(const PlannedModel& planned, std::string_view op) {
    std::vector<std::string> names;
    for (const LoweringChoice& choice : planned.plan.lowerings) {
        if (choice.op == op) names.push_back(choice.lowering);
    }
    return names;
}

TEST_F(PlanTest, CacheBytesAreThoseOfTheRows) {
    EngineOptions options;
    options.context = 1024;
    options.lowerings["mla_attention"] =
        "3";  // estimates for so small a model differ by less than a busy machine's speed
    // Two layers of 512 + 64 elements in f16.
    PlannedModel planned = plan("v2-plain.gguf", options);
    EXPECT_EQ(planned.plan.memory[0].cache, planned.info.layers * 576ull * 2 * 1024);
    options.cache_type_k = TSR_TYPE_Q8_0;
    planned = plan("v2-plain.gguf", options);
    EXPECT_EQ(planned.plan.memory[0].cache, planned.info.layers * 576ull / 32 * 34 * 1024);
    options.lowerings["mla_attention"] = "0";
    options.cache_type_k = TSR_TYPE_F16;
    planned = plan("v2-plain.gguf", options);
    EXPECT_GT(planned.plan.memory[0].cache, planned.info.layers * 576ull * 2 * 1024) << "a key and a value a head";
}

// Attention names a layout of its own first; only some cache types, heads and kernels can take it.
TEST_F(PlanTest, TheCacheHasTheLayoutThatAttentionPrefers) {
    const auto layouts = [&](tsr_type type, const char* variant) {
        EngineOptions options;
        options.cache_type_k = options.cache_type_v = type;
        options.lowerings["mla_attention"] = variant;
        const PlannedModel planned = plan(TSR_SOURCE_DIR "/models/demo-tessera-10m.gguf", options);
        std::set<std::string> found;
        for (const Instance& instance : planned.plan.instances) {
            if (instance.storage != 0 && planned.plan.graph.storage(instance.storage).role == TSR_ROLE_CACHE)
                found.insert(instance.layout);
        }
        return found;
    };
    const auto& flags = host_cpu_flags();
    const bool multiplies_bytes =
        std::ranges::binary_search(flags, test::runs_here("cpu_avx512") ? "avx512_vnni" : "avx_vnni");
    for (const char* variant : {"1", "2", "3"}) {
        EXPECT_THAT(layouts(TSR_TYPE_F16, variant), ElementsAre(StartsWith("f16_int16_"))) << variant;
        EXPECT_THAT(layouts(TSR_TYPE_Q8_0, variant), ElementsAre(multiplies_bytes ? "q8_0_four_tokens" : ""))
            << variant;
    }
    EXPECT_THAT(layouts(TSR_TYPE_F16, "0"), ElementsAre("")) << "keys and values of each head";
}

TEST_F(PlanTest, IsTheSameTwice) {
    const PlannedModel a = plan("v3-groups.gguf", {}), b = plan("v3-groups.gguf", {});
    ASSERT_EQ(a.plan.nodes.size(), b.plan.nodes.size());
    for (size_t i = 0; i < a.plan.nodes.size(); ++i) {
        EXPECT_STREQ(a.plan.nodes[i].kernel->name, b.plan.nodes[i].kernel->name);
        EXPECT_EQ(a.plan.nodes[i].operands, b.plan.nodes[i].operands);
    }
    EXPECT_EQ(a.plan.memory[0].allocated(), b.plan.memory[0].allocated());
}

TEST_F(PlanTest, APascalCardTakesAnotherWayAndSaysSo) {
    EngineOptions options;
    options.lowerings["mla_attention"] = "3";
    options.placement.gpu_layers = 99;
    const PlannedModel ampere = plan("v2-plain.gguf", options, {simulated_gpu("SIM0", 860, 1ull << 30)});
    EXPECT_THAT(lowerings(ampere, "mla_attention"), testing::Each("3"));
    const PlannedModel pascal = plan("v2-plain.gguf", options, {simulated_gpu("SIM0", 610, 1ull << 30)});
    for (const PlannedNode& node : pascal.plan.nodes) {
        const Node& what = pascal.plan.graph.nodes()[node.node];
        if (what.op != "flash_attention") continue;
        const tsr_tensor& key_cache = pascal.plan.graph.tensor(what.inputs[1]);
        const bool prefix = what.inputs[6] == 0 && what.inputs[2] == 0;
        EXPECT_FALSE(prefix && key_cache.dims[0] == 576) << "flash attention at 576/512 on a Pascal card";
    }
}

TEST_F(PlanTest, RulesPlaceTensors) {
    EngineOptions options;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{"exps", "CPU"}};
    const PlannedModel planned = plan("v3-groups.gguf", options, {simulated_gpu("SIM0", 860, 1ull << 30)});
    for (const Instance& instance : planned.plan.instances) {
        if (instance.storage == 0) continue;
        const Storage& storage = planned.plan.graph.storage(instance.storage);
        if (storage.role != TSR_ROLE_WEIGHT || instance.place == Place::kLoading) continue;
        if (storage.name.find("exps") != std::string::npos) {
            EXPECT_EQ(instance.device, 0u) << storage.name;
        } else if (storage.name.starts_with("blk.") && storage.bytes > 4096) {
            EXPECT_EQ(instance.device, 1u) << storage.name;
        }
    }
    EXPECT_GT(planned.plan.step.actions.size(), 6u) << "layers go back and forth";
}

TEST_F(PlanTest, RulesNameDevicesInLettersOfAnyCase) {
    const auto placed = [&](const char* device) {
        EngineOptions options;
        options.placement.rules = {{"exps", device}};
        const PlannedModel planned = plan("v3-groups.gguf", options, {simulated_gpu("SIM0", 860, 1ull << 30)});
        std::vector<uint32_t> devices;
        for (const Instance& instance : planned.plan.instances) devices.push_back(instance.device);
        return devices;
    };
    EXPECT_EQ(placed("cpu"), placed("CPU"));
    EXPECT_EQ(placed("sim0"), placed("SIM0"));
    EXPECT_NE(placed("cpu"), placed("sim0"));
}

TEST_F(PlanTest, BadRulesAreRefused) {
    EngineOptions options;
    options.placement.rules = {{"exps", "CUDA7"}};
    EXPECT_THAT(refusal("v3-groups.gguf", options), testing::AllOf(HasSubstr("CUDA7"), HasSubstr("there are: CPU")));
    options.placement.rules = {{"exps(", "CPU"}};
    EXPECT_THAT(refusal("v3-groups.gguf", options), HasSubstr("not a regular expression"));
    options.placement.rules = {{"no such tensor", "CPU"}};
    EXPECT_THAT(plan("v3-groups.gguf", options).plan.notes, Contains(HasSubstr("matches no tensor")));
}

TEST_F(PlanTest, WhatDoesNotFitNamesDeviceAndBytes) {
    EngineOptions options;
    options.placement.gpu_layers = 99;
    EXPECT_THAT(refusal("v2-plain.gguf", options, {simulated_gpu("SIM0", 860, 100 << 10)}),
                testing::AllOf(HasSubstr("does not fit"), HasSubstr("SIM0"), HasSubstr("MiB missing")));
}

TEST_F(PlanTest, WithoutWishesItFits) {
    EXPECT_EQ(refusal("v3-groups.gguf", {}, {simulated_gpu("SIM0", 860, 100 << 10)}), "");
    EXPECT_EQ(refusal("v3-groups.gguf", {}, {simulated_gpu("SIM0", 860, 8 << 20)}), "");
    EXPECT_EQ(refusal("v3-groups.gguf", {}, {simulated_gpu("SIM0", 860, 8 << 20), simulated_gpu("SIM1", 610, 4 << 20)}),
              "");
}

TEST_F(PlanTest, AnUnknownLoweringIsSaid) {
    EngineOptions options;
    options.lowerings["mla_attention"] = "9";
    EXPECT_THAT(plan("v2-plain.gguf", options).plan.notes, Contains(HasSubstr("there is no such lowering")));
}

TEST_F(PlanTest, ATooSmallScratchCapIsAReason) {
    EngineOptions options;
    options.scratch_bytes = 16;
    options.flash_attention = false;
    EXPECT_THAT(refusal("v2-plain.gguf", options), HasSubstr("unsupported"));
}

TEST_F(PlanTest, LargestContextIsWhatFits) {
    EngineOptions options;
    options.placement.gpu_layers = 99;
    plan("v2-plain.gguf", {});
    hardware->limit_memory("CPU", 64 << 20);
    const uint32_t most = largest_context(*file, *registry, *hardware, options);
    ASSERT_GT(most, 0u);
    options.context = most;
    check_fit(plan_model(*file, *registry, *hardware, options).plan);
    EXPECT_EQ(most % TSR_PAGE_TOKENS, 0u);
}

}  // namespace
}  // namespace tessera
