// The order of the steps of real plans: safe whatever the timing, and none of its waits can be left out.
#include "core/plan/step_check.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace tessera {
namespace {

using testing::IsEmpty;
using testing::Not;

struct Rig {
    const char* name;
    std::vector<uint32_t> gpus;  // compute capabilities
    int gpu_layers;
    std::vector<TensorRule> rules;
};

const std::vector<Rig> kRigs = {
    {"cpu", {}, 0, {}},
    {"one_gpu", {860}, 99, {{".*", "SIM0"}}},
    {"half_on_the_cpu", {860}, 2, {}},
    {"experts_on_the_cpu", {860}, 99, {{"exps", "CPU"}}},
    {"gate_apart_from_up", {860}, 99, {{"ffn_gate", "CPU"}}},
    {"two_gpus", {860, 610}, 99, {{"blk\\.[01]\\.|token_embd", "SIM0"}, {".*", "SIM1"}}},
    {"two_gpus_and_the_embedding_on_the_cpu",
     {860, 610},
     99,
     {{"token_embd", "CPU"}, {"blk\\.[01]\\.", "SIM0"}, {".*", "SIM1"}}},
    {"back_and_forth", {860, 610}, 99, {{"ffn_.*", "SIM1"}, {".*", "SIM0"}}},
    {"two_gpus_and_experts_on_the_cpu", {860, 860}, 99, {{"exps", "CPU"}, {"blk\\.0\\.", "SIM0"}, {"blk", "SIM1"}}},
    {"four_unlike",
     {900, 860, 750, 610},
     99,
     {{"blk\\.0\\.|token_embd", "SIM0"}, {"blk\\.1\\.attn", "SIM1"}, {"blk\\.1\\.ffn", "SIM2"}, {".*", "SIM3"}}},
};

class StepOrderOf : public testing::TestWithParam<Rig> {
  protected:
    PlannedModel plan(const char* model, const char* mla) {
        hardware = std::make_unique<Hardware>(Hardware::detect());
        for (size_t i = 0; i < GetParam().gpus.size(); ++i) {
            DeviceDescription gpu;
            gpu.kind = "simulated";
            gpu.id = "SIM" + std::to_string(i);
            gpu.name = "simulated";
            gpu.compute_capability = GetParam().gpus[i];
            gpu.memory_bytes = gpu.free_memory_bytes = 256 << 20;
            hardware->add(gpu);
        }
        registry = std::make_unique<Registry>(Registry::load(test::plugins_without({}), *hardware));
        file = std::make_unique<gguf::GgufFile>(gguf::GgufFile::open(std::filesystem::path(TSR_GOLDENS) / model));
        EngineOptions options;
        options.context = 512;
        options.sequences = 3;
        options.placement.gpu_layers = GetParam().gpu_layers;
        options.placement.rules = GetParam().rules;
        if (*mla) options.lowerings["mla_attention"] = mla;
        return plan_model(*file, *registry, *hardware, options);
    }

    std::unique_ptr<Hardware> hardware;
    std::unique_ptr<Registry> registry;
    std::unique_ptr<gguf::GgufFile> file;
};

// Every wait of the plan left out in turn has to be found.
void expect_every_wait_is_needed(const Plan& plan) {
    for (ActionId id = 0; id < plan.step.actions.size(); ++id) {
        const Action& action = plan.step.actions[id];
        for (const bool previous : {false, true}) {
            const std::vector<ActionId>& waits = previous ? action.after_previous : action.after;
            for (size_t i = 0; i < waits.size(); ++i) {
                EXPECT_THAT(check_step(plan, 5, OmittedWait{id, previous, i}), Not(IsEmpty()))
                    << action_name(plan, id) << " need not wait for " << action_name(plan, waits[i])
                    << (previous ? " of the step before" : "");
            }
        }
    }
}

TEST_P(StepOrderOf, IsSafeAndHasNoWaitTooMany) {
    for (const char* mla : {"0", "3"}) {
        const PlannedModel planned = plan("v3-groups.gguf", mla);
        EXPECT_THAT(check_step(planned.plan), IsEmpty());
        expect_every_wait_is_needed(planned.plan);
    }
    const PlannedModel planned = plan("qwen3moe-norm.gguf", "");
    EXPECT_THAT(check_step(planned.plan), IsEmpty());
    expect_every_wait_is_needed(planned.plan);
}

TEST_P(StepOrderOf, CopiesNoMoreThanNeeded) {
    const PlannedModel planned = plan("v3-groups.gguf", "3");
    size_t copies = 0;
    for (const Action& action : planned.plan.step.actions)
        copies += action.kind == ActionKind::kUpload || action.kind == ActionKind::kDownload ? 1 : 0;
    EXPECT_EQ(copies == 0, GetParam().gpus.empty());
    // All on one card: the inputs are copied there, the logits back, and all kernels are one run.
    if (std::string_view(GetParam().name) == "one_gpu") {
        EXPECT_EQ(copies, 2u);
        EXPECT_EQ(planned.plan.step.actions.size(), 5u);
        EXPECT_EQ(planned.plan.step.slots, 2u);
    }
}

TEST_P(StepOrderOf, SeveralAreUnderWayWhereNothingIsComputedByTheHost) {
    const std::string_view name = GetParam().name;
    const size_t cards = GetParam().gpus.size();
    const bool has_node = cards == 0 || name == "gate_apart_from_up" || name.ends_with("on_the_cpu");
    EXPECT_EQ(plan("v3-groups.gguf", "3").plan.step.slots, has_node ? 1 : cards + 1);
}

INSTANTIATE_TEST_SUITE_P(Rigs, StepOrderOf, testing::ValuesIn(kRigs),
                         [](const auto& instance) { return std::string(instance.param.name); });

// A device's other work continues while the host computes: its shared expert beside the experts on the CPU.
class Overlap : public StepOrderOf {};

TEST_P(Overlap, TheSharedExpertIsPutOnTheDeviceBeforeTheHostComputesItsExperts) {
    const PlannedModel planned = plan("v3-groups.gguf", "3");
    const Plan& p = planned.plan;
    const auto find = [&](std::string_view part) {
        for (ActionId id = 0; id < p.step.actions.size(); ++id) {
            const Action& action = p.step.actions[id];
            for (uint32_t i = action.first; i < action.first + action.count; ++i) {
                const Node& node = p.graph.nodes()[p.nodes[i].node];
                if (node.layer == 2 && (node.op == part || node.name.find(part) != std::string::npos)) return id;
            }
        }
        ADD_FAILURE() << "no node named " << part;
        return ActionId{0};
    };
    const ActionId shared = find("shexp"), experts = find("moe_ffn");
    EXPECT_EQ(p.step.device_of(p.step.actions[shared]), 1u);
    EXPECT_EQ(p.step.device_of(p.step.actions[experts]), 0u);
    EXPECT_LT(shared, experts);
    EXPECT_THAT(p.step.actions[experts].after, Not(testing::Contains(shared)));
}

// To the host and back: one run of nodes on the card for each way, and one at the beginning.
TEST_P(Overlap, TheCardHasARunOfNodesForEachTransition) {
    const PlannedModel planned = plan("v3-groups.gguf", "3");
    const Step& step = planned.plan.step;
    size_t runs = 0, transitions = 0;
    const auto is_run = [&](const Action& action, bool host) {
        return action.kind == ActionKind::kNodes && (action.track == 0) == host;
    };
    for (const Action& action : step.actions) {
        runs += is_run(action, false) ? 1 : 0;
        // The first one looks the embedding up; the others are the experts of a layer.
        transitions += is_run(action, true) && runs > 0 ? 2 : 0;
    }
    EXPECT_GT(transitions, 0u);
    EXPECT_EQ(runs, transitions + 1);
}

INSTANTIATE_TEST_SUITE_P(Rigs, Overlap, testing::Values(Rig{"experts_on_the_cpu", {860}, 99, {{"exps", "CPU"}}}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace tessera
