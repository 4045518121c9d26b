// Whole models on a device that lacks one op, or one element type: what it cannot compute is computed elsewhere, with a
// note and the same results; only where a rule of the user placed it that is an error.
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/node_devices.hpp"
#include "tests/model/random_models.hpp"
#include "tests/run/simulated_rig.hpp"

#include <tessera/types.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::expect_close;
using test::golden;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kDevice = "SIM0";

struct Settings {
    fs::path model;
    std::string lowering;  // of mla_attention; empty: the model has none
    tsr_type cache = TSR_TYPE_F16;
    std::vector<TensorRule> rules;
};

// The model on simulated GPUs, of which the first lacks some ops and types, and the CPU.
class OnCards {
  public:
    OnCards(const Settings& settings, size_t cards, const std::string& lacks = "")
        : first_(kDevice, TSR_SIMULATED_AT_ONCE, 0, lacks) {
        EngineOptions options;
        if (cards > 0) options.placement.gpu_layers = 99;
        options.context = 128;
        options.sequences = 2;
        options.rows = 24;
        options.expand_from = 8;
        options.cache_type_k = options.cache_type_v = settings.cache;
        if (!settings.lowering.empty()) options.lowerings["mla_attention"] = settings.lowering;
        if (cards > 0) options.placement.rules = settings.rules;
        loaded_ = std::make_unique<test::LoadedModel>(settings.model, options,
                                                      test::rig_config(std::vector<uint32_t>(cards, 860)));
        engine = loaded_->engine.get();
    }

    // Ops of nodes on a device.
    std::set<std::string> ops(DeviceIndex device) const {
        std::set<std::string> names;
        for (const PlannedNode& node : engine->plan().nodes) {
            const Node& what = engine->plan().graph.nodes()[node.node];
            if (what.stage == TSR_STAGE_RUN && node.device == device) names.insert(what.op);
        }
        return names;
    }
    const Registry& registry() const { return *loaded_->registry; }

    std::vector<float> logits() const {
        std::mt19937 random(5);
        std::vector<float> all;
        const auto tokens = [&](size_t count) { return test::random_tokens(*engine, random, count); };
        const auto step = [&](const std::vector<BatchEntry>& entries) { test::add_step(*engine, entries, all); };
        const auto prompt = tokens(21), other = tokens(12), one = tokens(1);
        const SequenceId a = engine->cache().create(), b = engine->cache().create();
        step({{a, prompt}});
        step({{a, one}, {b, other}});
        step({{a, one}, {b, one}});
        return all;
    }

    Engine* engine = nullptr;

  private:
    test::CardOptions first_;
    std::unique_ptr<test::LoadedModel> loaded_;
};

// ---- ops ----

// What together has every op that is computed on a device.
std::vector<Settings> models() {
    return {{golden("v3-groups.gguf"), "0", TSR_TYPE_F16, {}},
            {golden("v3-groups.gguf"), "1", TSR_TYPE_F16, {}},
            {golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {}},
            {golden("qwen3moe-norm.gguf"), "", TSR_TYPE_F16, {}}};
}

std::vector<Settings> two_card_models() {
    return {{golden("v2-plain.gguf"), "3", TSR_TYPE_F16, {}},
            {golden("v3-groups.gguf"), "1", TSR_TYPE_F16, {}},
            {golden("qwen3moe-norm.gguf"), "", TSR_TYPE_F16, {}}};
}

class LackingOp : public testing::TestWithParam<size_t> {};

TEST_P(LackingOp, IsComputedElsewhere) {
    const Settings settings = models()[GetParam()];
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    const std::set<std::string> ops = OnCards(settings, 1).ops(1);
    EXPECT_GE(ops.size(), 8u);
    for (const std::string& op : ops) {
        SCOPED_TRACE("without " + op);
        try {
            const OnCards without(settings, 1, op);
            EXPECT_FALSE(without.ops(1).contains(op));
            EXPECT_FALSE(without.ops(1).empty()) << "nothing is left on the device";
            if (without.ops(0).contains(op)) {
                EXPECT_THAT(without.engine->plan().notes, Contains(AllOf(HasSubstr(op), HasSubstr(kDevice))));
            }
            expect_close(without.logits(), wanted, 2e-3);
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Models, LackingOp, testing::Range<size_t>(0, 4), [](const auto& of) {
    const Settings settings = models()[of.param];
    std::string name = settings.model.stem().string() + (settings.lowering.empty() ? "" : "_mla" + settings.lowering);
    std::ranges::replace(name, '-', '_');
    return name;
});

// ---- the other card ----

// Device of each node by its name.
std::map<std::string, const PlannedNode*> nodes_by_name(const Plan& plan) {
    std::map<std::string, const PlannedNode*> nodes;
    for (const PlannedNode& node : plan.nodes) nodes[plan.graph.nodes()[node.node].name] = &node;
    return nodes;
}

class LackingOpOfTwoCards : public testing::TestWithParam<size_t> {};

// Of the second card and the CPU each node goes to the one that computes it sooner, copies included; the caches' nodes
// go together.
TEST_P(LackingOpOfTwoCards, IsComputedWhereItIsSoonest) {
    const Settings settings = two_card_models()[GetParam()];
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    const OnCards with(settings, 2);
    expect_close(with.logits(), wanted, 2e-3);
    const std::set<std::string> ops = with.ops(1);
    EXPECT_GE(ops.size(), 6u);
    EXPECT_GE(with.ops(2).size(), 6u) << "nothing is computed on the second card";
    std::map<DeviceIndex, size_t> moved;
    for (const std::string& op : ops) {
        SCOPED_TRACE("without " + op);
        const OnCards without(settings, 2, op);
        const Plan& plan = without.engine->plan();
        EXPECT_FALSE(without.ops(1).contains(op));
        expect_close(without.logits(), wanted, 2e-3);
        const auto before = nodes_by_name(with.engine->plan());
        for (const auto& [name, node] : nodes_by_name(plan)) {
            const Node& what = plan.graph.nodes()[node->node];
            const auto at = before.find(name);
            if (what.op != op || at == before.end() || at->second->device != 1) continue;
            if (what.layer < 0) continue;  // the embedding stays on the CPU, as where there is no room for it
            ASSERT_NE(node->device, 1u);
            EXPECT_THAT(plan.notes, Contains(AllOf(HasSubstr(op), HasSubstr(kDevice))));
            if (touches_cache(plan.graph, what)) continue;
            ++moved[node->device];
            const NodeView view(plan.graph, what);
            const auto seconds = [&](DeviceIndex device) {
                double bytes = 0;
                for (const auto* list : {&what.inputs, &what.outputs}) {
                    for (const Value value : *list) {
                        if (!value) continue;
                        const Storage& storage = plan.graph.storage(plan.graph.storage_of(value));
                        if (storage.role == TSR_ROLE_ACTIVATION) bytes += static_cast<double>(storage.bytes);
                    }
                }
                // Links of SIM0 and, where it goes to the other card, of that one, too.
                const double copies = bytes / plan.devices[1]->link_bandwidth * (device == 2 ? 2 : 1);
                return find_kernels(view.abi(), *plan.devices[device], without.registry()).seconds() + copies;
            };
            // Estimates of copies are of rows of a prompt in part: what is nearly equal may go either way.
            const DeviceIndex other = node->device == 0 ? 2 : 0;
            EXPECT_LT(seconds(node->device), 1.2 * seconds(other)) << name << " on " << node->device;
        }
    }
    EXPECT_GT(moved[2], 0u) << "nothing went to the second card";
}

INSTANTIATE_TEST_SUITE_P(Models, LackingOpOfTwoCards, testing::Range<size_t>(0, 3), [](const auto& of) {
    const Settings settings = two_card_models()[of.param];
    std::string name = settings.model.stem().string() + (settings.lowering.empty() ? "" : "_mla" + settings.lowering);
    std::ranges::replace(name, '-', '_');
    return name;
});

// The first card lacks the type of the experts: they are computed on the other one, which has room and is faster than
// the CPU.
TEST(LackingTypeOfTwoCards, GoesToTheOtherCard) {
    const Settings settings = {golden("v2-plain.gguf"), "3", TSR_TYPE_BF16, {}};
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    const OnCards without(settings, 2, "f16");
    const Plan& plan = without.engine->plan();
    for (const PlannedNode& node : plan.nodes) {
        const Node& what = plan.graph.nodes()[node.node];
        for (const Value value : what.inputs) {
            if (value && plan.graph.tensor(value).type == TSR_TYPE_F16) {
                EXPECT_NE(node.device, 1u) << what.name;
            }
        }
    }
    EXPECT_FALSE(without.ops(1).empty());
    EXPECT_TRUE(without.ops(2).contains("matmul"));
    EXPECT_THAT(plan.notes, Contains(AllOf(HasSubstr("f16"), HasSubstr(kDevice), HasSubstr("runs on SIM1"))));
    expect_close(without.logits(), wanted, 2e-2);
}

// ---- types ----

struct Type {
    const char* name;
    tsr_type type;
};
void PrintTo(const Type& type, std::ostream* out) {
    *out << type.name;
}
std::string name_of_type(const testing::TestParamInfo<Type>& of) {
    return of.param.name;
}

// Whatever has an operand of the type goes away, all else stays.
void expect_type_elsewhere(const Settings& settings, const std::string& type, double tolerance) {
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    const OnCards without(settings, 1, type);
    const Plan& plan = without.engine->plan();
    bool moved = false;
    for (const PlannedNode& node : plan.nodes) {
        const Node& what = plan.graph.nodes()[node.node];
        bool has_type = false;
        for (const auto* list : {&what.inputs, &what.outputs}) {
            for (const Value value : *list)
                has_type |= value != 0 && type_info(plan.graph.tensor(value).type).name == type;
        }
        if (!has_type || what.stage != TSR_STAGE_RUN) continue;
        EXPECT_EQ(node.device, 0u) << what.name;
        moved = true;
    }
    EXPECT_TRUE(moved) << "the model has nothing of this type";
    EXPECT_EQ(without.ops(1).empty(), type == "f32") << "activations are f32: without it nothing is left there";
    EXPECT_THAT(plan.notes, Contains(AllOf(HasSubstr(type), HasSubstr(kDevice))));
    expect_close(without.logits(), wanted, tolerance);
}

class LackingCacheType : public testing::TestWithParam<Type> {};
TEST_P(LackingCacheType, IsComputedElsewhere) {
    expect_type_elsewhere({golden("v2-plain.gguf"), "3", GetParam().type, {}}, GetParam().name, 2e-2);
}
INSTANTIATE_TEST_SUITE_P(Types, LackingCacheType,
                         testing::Values(Type{"f16", TSR_TYPE_F16}, Type{"bf16", TSR_TYPE_BF16},
                                         Type{"q8_0", TSR_TYPE_Q8_0}, Type{"q6_0", TSR_TYPE_Q6_0},
                                         Type{"q5_0", TSR_TYPE_Q5_0}, Type{"q5_1", TSR_TYPE_Q5_1},
                                         Type{"q4_0", TSR_TYPE_Q4_0}, Type{"q4_1", TSR_TYPE_Q4_1},
                                         Type{"iq4_nl", TSR_TYPE_IQ4_NL}),
                         name_of_type);

TEST(LackingType, OfActivationsLeavesNothingOnTheDevice) {
    expect_type_elsewhere({golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {}}, "f32", 1e-6);
}

class LackingWeightType : public testing::TestWithParam<Type> {};
TEST_P(LackingWeightType, IsComputedElsewhere) {
    const std::string type = GetParam().name;
    const fs::path model = test::random_model("lacking-" + type, "--preset tiny-v3 --type " + type);
    expect_type_elsewhere({model, "3", type == "f16" ? TSR_TYPE_BF16 : TSR_TYPE_F16, {}}, type, 2e-2);
}
INSTANTIATE_TEST_SUITE_P(Types, LackingWeightType,
                         testing::Values(Type{"f16", TSR_TYPE_F16}, Type{"bf16", TSR_TYPE_BF16},
                                         Type{"q8_0", TSR_TYPE_Q8_0}, Type{"q4_0", TSR_TYPE_Q4_0},
                                         Type{"q4_1", TSR_TYPE_Q4_1}, Type{"q5_0", TSR_TYPE_Q5_0},
                                         Type{"q5_1", TSR_TYPE_Q5_1}, Type{"q2_K", TSR_TYPE_Q2_K},
                                         Type{"q3_K", TSR_TYPE_Q3_K}, Type{"q4_K", TSR_TYPE_Q4_K},
                                         Type{"q5_K", TSR_TYPE_Q5_K}, Type{"q6_K", TSR_TYPE_Q6_K},
                                         Type{"iq4_nl", TSR_TYPE_IQ4_NL}, Type{"iq4_xs", TSR_TYPE_IQ4_XS}),
                         name_of_type);

// ---- rules ----

TEST(LackingRule, IsAnErrorThatNamesRuleNodeAndDevice) {
    const Settings settings = {golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {{"blk\\.1\\.attn_output", kDevice}}};
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    expect_close(OnCards(settings, 1).logits(), wanted, 2e-3);
    try {
        const OnCards without(settings, 1, "matmul");
        FAIL() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(),
                    AllOf(HasSubstr("blk\\.1\\.attn_output"), HasSubstr("attn_output"), HasSubstr(kDevice)));
    }
}

// Of what no rule placed on the device, a missing op is no error.
TEST(LackingRule, IsNoneForOtherNodes) {
    const Settings settings = {golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {{"blk\\.1\\.attn_output", kDevice}}};
    const std::vector<float> wanted = OnCards(settings, 0).logits();
    expect_close(OnCards(settings, 1, "rms_norm").logits(), wanted, 2e-3);
}

}  // namespace
}  // namespace tessera
