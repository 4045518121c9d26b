// Logits against those that public implementations computed (tests/goldens/README.md), with every layer on the cards
// that are there. On emulated cards in the build's tests.
#include "tests/goldens/golden.hpp"
#include "tests/goldens/golden_models.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

constexpr double kTolerance = 1e-2;  // of the largest logit

class GoldensOnCards : public testing::TestWithParam<std::string> {};

TEST_P(GoldensOnCards, LogitsAgree) {
    const Golden golden(source_dir() / "tests/goldens" / (GetParam() + ".short.golden.gguf"));
    EngineOptions options;
    options.context = static_cast<uint32_t>(golden.tokens.size());
    options.rows = options.output_rows = 97;
    options.threads = 1;
    options.expand_from = 12;
    options.placement.gpu_layers = 999;
    LoadedModel model(golden.model, options, plugins_without({"simulated"}));
    const Plan& plan = model.engine->plan();
    ASSERT_GT(plan.devices.size(), 1u);
    for (size_t i = 1; i < plan.devices.size(); ++i) EXPECT_GT(plan.memory[i].cache, 0u) << plan.devices[i]->id;
    for (const PlannedNode& node : plan.nodes) EXPECT_NE(node.device, 0u) << plan.graph.nodes()[node.node].name;
    expect_recorded(golden, logits_of(*model.engine, golden.tokens), kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Recorded, GoldensOnCards, testing::ValuesIn(golden_models()), [](const auto& instance) {
    std::string name = instance.param;
    std::ranges::replace(name, '-', '_');
    return name;
});

}  // namespace
}  // namespace tessera::test
