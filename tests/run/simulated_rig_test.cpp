// Models on simulated GPUs with address spaces of their own, alone and mixed with the CPU: logits as on the CPU.
#include "tests/run/simulated_rig.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace tessera {
namespace {

struct Rig {
    const char* name;
    std::vector<uint32_t> gpus;  // compute capabilities
    int gpu_layers;
    std::vector<TensorRule> rules;
};

// Three sequences: a prompt, generation, a shared prefix with a page that must be copied, and all three in one step.
std::vector<float> run(Engine& engine) {
    std::vector<float> all;
    std::mt19937 random(11);
    const auto tokens = [&](size_t count) { return test::random_tokens(engine, random, count); };
    const auto step = [&](const std::vector<BatchEntry>& entries) { test::add_step(engine, entries, all); };
    const auto first = tokens(70), second = tokens(3), third = tokens(25), one = tokens(1), other = tokens(1);
    const SequenceId a = engine.cache().create();
    step({{a, first}});
    const SequenceId b = engine.cache().fork(a, 66);
    const SequenceId c = engine.cache().create();
    step({{a, one}, {b, second}, {c, third}});
    step({{c, other}, {b, one}, {a, second}});
    engine.cache().truncate(a, 40);
    step({{a, third}});
    return all;
}

std::vector<float> logits_of(const std::string& model, const Rig& rig, const char* mla, tsr_type cache) {
    EngineOptions options;
    options.context = 512;
    options.sequences = 3;
    options.rows = 80;
    options.expand_from = 20;
    options.cache_type_k = options.cache_type_v = cache;
    if (*mla) options.lowerings["mla_attention"] = mla;
    options.placement.gpu_layers = rig.gpu_layers;
    options.placement.rules = rig.rules;
    options.check_order = true;
    test::LoadedModel loaded(test::golden(model.c_str()), options, test::rig_config(rig.gpus));
    std::vector<bool> used(rig.gpus.size() + 1, false);
    for (const PlannedNode& node : loaded.engine->plan().nodes) used[node.device] = true;
    for (size_t i = 1; i < used.size(); ++i) EXPECT_TRUE(used[i]) << "nothing runs on GPU " << i - 1;
    return run(*loaded.engine);
}

const Rig kCpu{"cpu", {}, 0, {}};
const std::vector<Rig> kRigs = {
    {"one_ampere", {860}, 99, {}},
    {"ampere_alone", {860}, 99, {{".*", "SIM0"}}},
    {"pascal_alone", {610}, 99, {{".*", "SIM0"}}},
    {"half_on_the_cpu", {860}, 2, {}},
    {"experts_on_the_cpu", {860}, 99, {{"exps", "CPU"}}},
    {"gate_apart_from_up", {860}, 99, {{"ffn_gate", "CPU"}}},
    {"ampere_and_pascal", {860, 610}, 99, {}},
    {"attention_and_experts_apart", {860, 610}, 99, {{"ffn_.*", "SIM1"}, {"attn_.*", "SIM0"}}},
    {"four_unlike",
     {900, 860, 750, 610},
     99,
     {{"blk\\.0\\.", "SIM0"}, {"blk\\.1\\.attn", "SIM1"}, {"blk\\.1\\.ffn", "SIM2"}, {"blk\\.2\\.|output", "SIM3"}}},
};

struct Case {
    Rig rig;
    const char* model;
    const char* mla;
};

class SimulatedRig : public testing::TestWithParam<Case> {};

TEST_P(SimulatedRig, LogitsAreThoseOfTheCpu) {
    const Case& c = GetParam();
    // The latent rows of the small model are not whole blocks of q8_0.
    const bool blocks = std::string_view(c.model) != "v3-groups.gguf";
    for (const tsr_type cache : {TSR_TYPE_F16, blocks ? TSR_TYPE_Q8_0 : TSR_TYPE_BF16}) {
        const auto wanted = logits_of(c.model, kCpu, c.mla, cache);
        test::expect_close(logits_of(c.model, c.rig, c.mla, cache), wanted, cache == TSR_TYPE_F16 ? 2e-3 : 2e-2);
    }
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const Rig& rig : kRigs) {
        for (const char* mla : {"0", "1", "2", "3"}) all.push_back({rig, "v3-groups.gguf", mla});
        if (rig.gpus.size() == 2) all.push_back({rig, "v2-plain.gguf", "3"});
        if (rig.gpus.size() <= 2) all.push_back({rig, "qwen3moe-norm.gguf", ""});
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Rigs, SimulatedRig, testing::ValuesIn(cases()), [](const auto& instance) {
    const Case& c = instance.param;
    std::string name = std::string(c.rig.name) + "_" + c.model;
    name = name.substr(0, name.rfind('.')) + (*c.mla ? std::string("_mla") + c.mla : "");
    std::ranges::replace(name, '-', '_');
    return name;
});

}  // namespace
}  // namespace tessera
