// Keys of Step-3.5-Flash that converters call otherwise or write for each layer.
#include "tests/goldens/golden_models.hpp"
#include "tests/model/claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {
namespace {

using testing::HasSubstr;

class StepClaims : public Claims {
  protected:
    const EditedModel model_{golden_model("step35")};

    void rename_key(EditedModel& model, std::string_view from, std::string_view to) const {
        const auto at =
            std::ranges::find(model.keys, "step35." + std::string(from), &std::pair<std::string, gguf::Value>::first);
        ASSERT_NE(at, model.keys.end());
        at->first = "step35." + std::string(to);
    }
};

TEST_F(StepClaims, LimitsOfActivationsHaveTwoNames) {
    EditedModel other = model_;
    rename_key(other, "swiglu_clamp_exp", "swiglu_limits");
    rename_key(other, "swiglu_clamp_shexp", "swiglu_limits_shared");
    EXPECT_EQ(logits(other), logits(model_));
    other.remove_key("step35.swiglu_limits");
    EXPECT_NE(logits(other), logits(model_));
    EXPECT_TRUE(outcome(other).names("swiglu_clamp_exp"));
    other.set("step35.swiglu_limits", gguf::Array(std::vector<float>{0, 0, -1, 0}));
    EXPECT_THAT(outcome(other).error, HasSubstr("step35.swiglu_limits has -1"));
    other.set("step35.swiglu_limits", gguf::Array(std::vector<float>{0, 7}));
    EXPECT_THAT(outcome(other).error, HasSubstr("step35.swiglu_limits has 2 elements"));
    EditedModel both = model_;
    both.set("step35.swiglu_limits", gguf::Array(std::vector<float>{0, 0, 0.25f, 0.5f}));
    EXPECT_THAT(outcome(both).error, HasSubstr("step35.swiglu_clamp_exp and step35.swiglu_limits are two names"));
    both.set("step35.swiglu_limits", gguf::Array(std::vector<float>{0, 0, 0.75f, 0.5f}));
    EXPECT_EQ(logits(both), logits(model_));
}

TEST_F(StepClaims, RotaryEmbeddingsOfLayersAreThoseOfTheirKind) {
    EditedModel each = model_;
    each.set("step35.rope.dimension_count_per_layer", gguf::Array(std::vector<uint32_t>{8, 16, 16, 8}));
    each.set("step35.rope.freq_base_per_layer", gguf::Array(std::vector<float>{5e6f, 1e4f, 1e4f, 5e6f}));
    each.remove_key("step35.rope.freq_base_swa");
    EXPECT_EQ(logits(each), logits(model_));
    EditedModel wrong = each;
    wrong.set("step35.rope.dimension_count_per_layer", gguf::Array(std::vector<uint32_t>{8, 16, 8, 8}));
    EXPECT_THAT(outcome(wrong).error, HasSubstr("rope.dimension_count_per_layer is 8 for layer 2"));
    wrong = each;
    wrong.set("step35.rope.freq_base_per_layer", gguf::Array(std::vector<float>{5e6f, 1e4f, 5e4f, 5e6f}));
    EXPECT_THAT(outcome(wrong).error, HasSubstr("rope.freq_base_per_layer is 50000 for layer 2"));
    wrong.set("step35.rope.freq_base_per_layer", gguf::Array(std::vector<float>{5e6f, 0.f, 0.f, 5e6f}));
    EXPECT_THAT(outcome(wrong).error, HasSubstr("rope.freq_base_per_layer is 0 for layer 1; a positive number"));
    wrong = model_;
    wrong.remove_key("step35.rope.freq_base_swa");
    EXPECT_THAT(outcome(wrong).error, HasSubstr("'step35.rope.freq_base_swa' is missing"));
    wrong = model_;
    wrong.set("step35.rope.scaling.apply_mask", uint32_t{3});
    EXPECT_THAT(outcome(wrong).error, HasSubstr("step35.rope.scaling.apply_mask is 3"));
    wrong.set("step35.rope.scaling.apply_mask", uint32_t{1});
    EXPECT_EQ(logits(wrong), logits(model_));
}

// The first factors of the table, of layers without a window alone.
TEST_F(StepClaims, FactorsAreAsManyAsPairsOfAHead) {
    EditedModel model = model_;
    model.remove_tensors("rope_freqs");
    model.add("rope_freqs.weight", {4}, {1, 1, 1, 1});
    EXPECT_THAT(outcome(model).error, HasSubstr("the metadata ask for [8]"));
    model.remove_tensors("rope_freqs");
    const std::vector<float> none = logits(model);
    model.add("rope_freqs.weight", {8}, {1, 1, 1, 1, 5, 5, 5, 5});
    EXPECT_EQ(logits(model), none);
}

}  // namespace
}  // namespace tessera::test
