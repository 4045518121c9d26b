// An engine carries out the plan that it is given.
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(GivenPlan, IsNotMadeAnew) {
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    gguf::GgufFile file = gguf::GgufFile::open(TSR_GOLDENS "/v3-groups.gguf");
    EngineOptions options;
    options.context = 128;
    PlannedModel planned = plan_model(file, registry, hardware, options);
    planned.plan.notes.emplace_back("this one");
    const Engine engine(std::move(file), std::move(planned), registry, hardware, options);
    EXPECT_THAT(engine.plan().notes, testing::Contains("this one"));
}

TEST(GivenPlan, HasTheRowsOfAPromptThatTheOptionsSay) {
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    const gguf::GgufFile file = gguf::GgufFile::open(TSR_GOLDENS "/v3-groups.gguf");
    EngineOptions options;
    options.context = 128;
    options.expand_from = 7;
    EXPECT_EQ(plan_model(file, registry, hardware, options).plan.prompt_rows_from, 7u);
}

}  // namespace
}  // namespace tessera
