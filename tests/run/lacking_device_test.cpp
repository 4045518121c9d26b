// Whole models on a device that lacks one op, or one element type: what it cannot compute is computed elsewhere, with a
// note and the same results; only where a rule of the user placed it that is an error.
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "plugins/simulated/simulated_failures.h"
#include "tests/support.hpp"

#include <tessera/plugin.h>
#include <tessera/types.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#ifdef TSR_SHARED_DIR
#include "tests/model/random_models.hpp"
#endif

namespace tessera {
namespace {

namespace fs = std::filesystem;
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

// The model on a simulated GPU, which lacks some ops and types, and the CPU; `gpu` false: on the CPU alone.
class OnDevice {
  public:
    OnDevice(const Settings& settings, bool gpu, const std::string& lacks = "") {
        Config config = test::plugins_without({"cpu_avx2", "cpu_avx512"});
        EngineOptions options;
        if (gpu) {
            DeviceDescription card;
            card.kind = "simulated";
            card.id = kDevice;
            card.name = "simulated";
            card.compute_capability = 860;
            card.memory_bytes = card.free_memory_bytes = 256 << 20;
            config.simulated.push_back(card);
            options.placement.gpu_layers = 99;
        }
        options.context = 128;
        options.sequences = 2;
        options.rows = 24;
        options.expand_from = 8;
        options.cache_type_k = options.cache_type_v = settings.cache;
        if (!settings.lowering.empty()) options.lowerings["mla_attention"] = settings.lowering;
        if (gpu) options.placement.rules = settings.rules;
        hardware_ = std::make_unique<Hardware>(Hardware::detect());
        apply(config, *hardware_);
        registry_ = std::make_unique<Registry>(Registry::load(config, *hardware_));
        configure(lacks);
        engine = std::make_unique<Engine>(gguf::GgufFile::open(settings.model), *registry_, *hardware_, options);
    }
    ~OnDevice() {
        engine.reset();
        if (const tsr_simulated_failures* simulated = failures()) simulated->configure(kDevice, nullptr);
    }
    OnDevice(const OnDevice&) = delete;

    // Ops of nodes on the device, or on the CPU.
    std::set<std::string> ops(bool on_device) const {
        std::set<std::string> names;
        for (const PlannedNode& node : engine->plan().nodes) {
            const Node& what = engine->plan().graph.nodes()[node.node];
            if (what.stage == TSR_STAGE_RUN && (node.device != 0) == on_device) names.insert(what.op);
        }
        return names;
    }

    std::vector<float> logits() const {
        std::mt19937 random(5);
        const auto tokens = [&](size_t count) {
            std::vector<Token> list(count);
            for (Token& token : list) token = static_cast<Token>(random() % engine->info().vocabulary);
            return list;
        };
        std::vector<float> all;
        const auto step = [&](const std::vector<BatchEntry>& entries) {
            for (const auto row : engine->step(entries)) all.insert(all.end(), row.begin(), row.end());
        };
        const auto prompt = tokens(21), other = tokens(12), one = tokens(1);
        const SequenceId a = engine->cache().create(), b = engine->cache().create();
        step({{a, prompt}});
        step({{a, one}, {b, other}});
        step({{a, one}, {b, one}});
        return all;
    }

    std::unique_ptr<Engine> engine;

  private:
    const tsr_simulated_failures* failures() const {
        const PluginRecord* record = registry_ ? registry_->find_plugin("simulated") : nullptr;
        if (!record) return nullptr;
        return static_cast<const tsr_simulated_failures*>(
            record->table->get_extension(record->table, TSR_SIMULATED_FAILURES));
    }
    void configure(const std::string& lacks) const {
        const tsr_simulated_failures* simulated = failures();
        if (!simulated) return;
        const tsr_simulated_options how = {sizeof how, TSR_SIMULATED_AT_ONCE, 1, 0, 0, lacks.c_str()};
        ASSERT_EQ(simulated->configure(kDevice, &how), 1u) << lacks;
    }

    std::unique_ptr<Hardware> hardware_;
    std::unique_ptr<Registry> registry_;
};

void expect_close(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    double largest = 0, worst = 0;
    for (const float value : wanted) largest = std::max<double>(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(std::isfinite(got[i])) << i;
        worst = std::max<double>(worst, std::abs(got[i] - wanted[i]));
    }
    EXPECT_LE(worst, tolerance * largest);
}

fs::path golden(const char* name) {
    return test::source_dir() / "tests/goldens" / name;
}

// ---- ops ----

// What together has every op that is computed on a device.
std::vector<Settings> models() {
    return {{golden("v3-groups.gguf"), "0", TSR_TYPE_F16, {}},
            {golden("v3-groups.gguf"), "1", TSR_TYPE_F16, {}},
            {golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {}},
            {golden("qwen3moe-norm.gguf"), "", TSR_TYPE_F16, {}}};
}

class LackingOp : public testing::TestWithParam<size_t> {};

TEST_P(LackingOp, IsComputedElsewhere) {
    const Settings settings = models()[GetParam()];
    const std::vector<float> wanted = OnDevice(settings, false).logits();
    const std::set<std::string> ops = OnDevice(settings, true).ops(true);
    EXPECT_GE(ops.size(), 8u);
    for (const std::string& op : ops) {
        SCOPED_TRACE("without " + op);
        try {
            const OnDevice without(settings, true, op);
            EXPECT_FALSE(without.ops(true).contains(op));
            EXPECT_FALSE(without.ops(true).empty()) << "nothing is left on the device";
            if (without.ops(false).contains(op)) {
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
    const std::vector<float> wanted = OnDevice(settings, false).logits();
    const OnDevice without(settings, true, type);
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
    EXPECT_EQ(without.ops(true).empty(), type == "f32") << "activations are f32: without it nothing is left there";
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

#ifdef TSR_SHARED_DIR
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
#endif

// ---- rules ----

TEST(LackingRule, IsAnErrorThatNamesRuleNodeAndDevice) {
    const Settings settings = {golden("v3-groups.gguf"), "3", TSR_TYPE_F16, {{"blk\\.1\\.attn_output", kDevice}}};
    const std::vector<float> wanted = OnDevice(settings, false).logits();
    expect_close(OnDevice(settings, true).logits(), wanted, 2e-3);
    try {
        const OnDevice without(settings, true, "matmul");
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
    const std::vector<float> wanted = OnDevice(settings, false).logits();
    expect_close(OnDevice(settings, true, "rms_norm").logits(), wanted, 2e-3);
}

}  // namespace
}  // namespace tessera
