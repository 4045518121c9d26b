// Keys of Granite 4's files whose layers all have attention.
#include "tests/goldens/golden_models.hpp"
#include "tests/model/claims.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera::test {
namespace {

class GraniteClaims : public Claims, public testing::WithParamInterface<std::string_view> {
  protected:
    std::string key(std::string_view name) const { return std::string(GetParam()) + "." + std::string(name); }
    const EditedModel model_{golden_model(GetParam())};
};

TEST_P(GraniteClaims, KeysOfRecurrentLayersAreNoObstacle) {
    EditedModel hybrid = model_;
    for (const std::string_view name : {"conv_kernel", "state_size", "group_count", "inner_size", "time_step_rank"})
        hybrid.set(key("ssm." + std::string(name)), uint32_t{4});
    hybrid.set(key("rope.scaling.finetuned"), true);
    EXPECT_EQ(outcome(hybrid).error, "");
    EXPECT_EQ(logits(hybrid), logits(model_));
}

TEST_P(GraniteClaims, AKeySaysThatThereIsNoRotaryEmbedding) {
    EditedModel without = model_, still = model_;
    without.set(key("rope.scaling.finetuned"), false);
    EXPECT_NE(logits(without), logits(model_));
    EXPECT_TRUE(outcome(without).names("rope.scaling.finetuned"));
    // Positions that are all but 0 turn nothing.
    still.set(key("rope.scaling.type"), std::string("linear"));
    still.set(key("rope.scaling.factor"), 1e30f);
    EXPECT_EQ(logits(without), logits(still));
}

INSTANTIATE_TEST_SUITE_P(Models, GraniteClaims, testing::Values("granite", "granitemoe"));

}  // namespace
}  // namespace tessera::test
