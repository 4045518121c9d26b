// Files of models with latent attention: what is said of sparse attention, and keys and tensors that only some have.
#include "tests/goldens/golden_models.hpp"
#include "tests/model/claims.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {
namespace {

using testing::HasSubstr;

// As many tokens as attention is exact for are said, unless the model's context is no longer.
TEST_F(Claims, DenseAttentionInPlaceOfSparseIsSaid) {
    for (const char* name : {"deepseek32", "glm-dsa"}) {
        EditedModel model(golden_model(name));
        const std::string key = model.architecture() + ".attention.indexer.top_k";
        EXPECT_TRUE(outcome(model).names("up to 128 tokens of a sequence (" + key + ")"));
        EXPECT_TRUE(outcome(model).names(".indexer."));
        model.set(key, uint32_t{1} << 20);
        EXPECT_FALSE(outcome(model).names("attention is dense, where"));
        model.remove_key(key);
        EXPECT_TRUE(outcome(model).names(key + " would say"));
        model.remove_tensors(".indexer.");
        EXPECT_FALSE(outcome(model).names("attention is dense"));
    }
}

// Files of Mistral-Large-3 and, at first, of models with sparse attention are of the architecture deepseek2.
TEST_F(Claims, TheShapeOfDeepSeekIsReadUnderItsNameToo) {
    for (const char* name : {"deepseek32", "glm-dsa", "mistral4"}) {
        const EditedModel model(golden_model(name));
        const std::string prefix = model.architecture() + ".";
        EditedModel other = model;
        for (auto& [key, value] : other.keys) {
            if (key.starts_with(prefix)) key = "deepseek2." + key.substr(prefix.size());
        }
        other.set("general.architecture", std::string("deepseek2"));
        EXPECT_EQ(logits(other), logits(model)) << name;
    }
}

TEST_F(Claims, TheScalesOfMiniCpmMayBeInTheFile) {
    EditedModel model(golden_model("minicpm3"));
    const std::vector<float> expected = logits(model);
    EXPECT_TRUE(outcome(model).names("minicpm3.embedding_scale 12"));
    EXPECT_TRUE(outcome(model).names("minicpm3.residual_scale 0.80"));
    EXPECT_TRUE(outcome(model).names("minicpm3.logit_scale 0.375"));
    model.set("minicpm3.embedding_scale", 12.0f);
    model.set("minicpm3.residual_scale", static_cast<float>(1.4 / std::sqrt(3.0)));
    model.set("minicpm3.logit_scale", 0.375f);
    expect_same(logits(model), expected);
    EXPECT_FALSE(outcome(model).names("_scale"));
    for (const char* key : {"embedding_scale", "residual_scale", "logit_scale"}) {
        EditedModel changed = model;
        changed.set(std::string("minicpm3.") + key, 2.0f);
        EXPECT_NE(logits(changed), expected) << key;
        changed.set(std::string("minicpm3.") + key, 0.0f);
        EXPECT_THAT(outcome(changed).error, HasSubstr(key));
    }
}

// Of 64 tokens of context here.
TEST_F(Claims, FactorsOfRopeFollowFromTheContext) {
    EditedModel model(golden_model("minicpm3"));
    const std::vector<float> expected = logits(model);
    EditedModel past = model;
    past.set("minicpm3.rope.scaling.original_context_length", uint32_t{63});
    const std::vector<float> other = logits(past);
    EXPECT_NE(other, expected);
    std::swap(past.tensor("rope_factors_short.weight").bytes, past.tensor("rope_factors_long.weight").bytes);
    EXPECT_EQ(logits(past), expected);
    past.set("minicpm3.rope.scaling.original_context_length", uint32_t{64});
    EXPECT_EQ(logits(past), other);
    past.set("minicpm3.rope.scaling.type", std::string("longrope"));
    EXPECT_EQ(logits(past), other);
    past.remove_tensors("rope_factors_long");
    EXPECT_THAT(outcome(past).error, HasSubstr("rope_factors_long.weight is missing"));
    past.remove_tensors("rope_factors_short");
    EXPECT_THAT(outcome(past).error, HasSubstr("'longrope'"));
    past.remove_key("minicpm3.rope.scaling.type");
    EXPECT_EQ(outcome(past).error, "");
}

TEST_F(Claims, TheTemperatureOfAttentionNeedsALength) {
    EditedModel model(golden_model("mistral4"));
    model.set("mistral4.attention.temperature_length", uint32_t{4});
    const std::vector<float> expected = logits(model);
    model.set("mistral4.rope.scaling.original_context_length", uint32_t{4});
    const std::vector<float> other_rope = logits(model);
    model.remove_key("mistral4.attention.temperature_length");
    EXPECT_TRUE(outcome(model).names("mistral4.attention.temperature_length 4"));
    EXPECT_EQ(logits(model), other_rope);
    EXPECT_NE(other_rope, expected);
    for (const char* key : {"type", "factor", "original_context_length", "yarn_log_multiplier"})
        model.remove_key(std::string("mistral4.rope.scaling.") + key);
    EXPECT_THAT(outcome(model).error, HasSubstr("mistral4.attention.temperature_scale is 0.5, but key"));
    model.set("mistral4.attention.temperature_length", uint32_t{0});
    EXPECT_THAT(outcome(model).error, HasSubstr("mistral4.attention.temperature_length"));
}

}  // namespace
}  // namespace tessera::test
