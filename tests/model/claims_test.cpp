// Nothing of a file is ignored in silence: of every golden model one tensor or key is removed, renamed or added, and
// each time the file is refused, or a note names the change, or it computes what it says.
#include "tests/model/claims.hpp"

#include "tests/goldens/golden_models.hpp"
#include "tests/model/plain_llama.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class EveryGolden : public Claims, public testing::WithParamInterface<std::string> {
  protected:
    template <typename Parts, typename Name>
    void expect_no_silence(Parts EditedModel::*parts, const Name& name, const char* renamed_by);
};

TEST_P(EveryGolden, BuildsAsItIs) {
    const EditedModel model(golden_model(GetParam()));
    EXPECT_EQ(outcome(model).error, "");
}

// Each part of a list of the model is taken away and renamed; `name` is that of a part.
template <typename Parts, typename Name>
void EveryGolden::expect_no_silence(Parts EditedModel::*parts, const Name& name, const char* renamed_by) {
    const EditedModel model(golden_model(GetParam()));
    const std::vector<float> before = logits(model);
    for (size_t i = 0; i < (model.*parts).size(); ++i) {
        const std::string is = name((model.*parts)[i]);
        SCOPED_TRACE(is);
        EditedModel removed = model;
        (removed.*parts).erase((removed.*parts).begin() + static_cast<ptrdiff_t>(i));
        expect_honest(removed, is, before);
        EditedModel renamed = model;
        name((renamed.*parts)[i]) += renamed_by;
        expect_honest(renamed, is, before);
    }
}

TEST_P(EveryGolden, NoTensorGoesInSilence) {
    expect_no_silence(
        &EditedModel::tensors, [](auto& tensor) -> auto& { return tensor.name; }, ".renamed");
}

TEST_P(EveryGolden, NoKeyGoesInSilence) {
    expect_no_silence(
        &EditedModel::keys, [](auto& key) -> auto& { return key.first; }, "_renamed");
}

TEST_P(EveryGolden, ForeignTensorsRefuse) {
    const EditedModel model(golden_model(GetParam()));
    for (const char* name : {"extra.weight",
                             "blk.0.attn_sinks.weight",
                             "blk.0.attn_norm.bias",
                             "blk.0.ffn_norm.bias",
                             "blk.1.foo.weight",
                             "blk.99.attn_norm.weight",
                             "output_norm.bias",
                             "token_embd_norm.weight",
                             "rope_factors_long.weight",
                             "blk.0.post_attention_norm.weight",
                             "blk.1.layer_output_scale.weight",
                             "blk.0.attn_q_norm.bias",
                             "blk.0.attn_qkv.weight",
                             "blk.1.ffn_gate_inp.bias",
                             "blk.1.ffn_up_exps.bias",
                             "blk.0.attn_q.scale",
                             "per_layer_token_embd.weight",
                             "v.blk.0.attn_q.weight",
                             "blk.0.indexed.weight",
                             "cls.weight"}) {
        if (model.has_tensor(name)) continue;
        // Of these the other table is asked for.
        const bool tables = model.architecture() == "phi3" || model.architecture() == "minicpm";
        if (tables && std::string_view(name) == "rope_factors_long.weight") continue;
        EditedModel added = model;
        added.add(name, {64}, std::vector<float>(64, 1.5f));
        const Outcome result = outcome(added);
        EXPECT_THAT(result.error, HasSubstr(name));
        EXPECT_THAT(result.advice, testing::Contains(Advice{AdviceCode::kAllowUnused, ""}));
        EXPECT_TRUE(outcome(added, true).names(name)) << name;
    }
    EditedModel many = model;
    for (int i = 0; i < 9; ++i) many.add("blk.0.unknown_" + std::to_string(i) + ".weight", {1}, {1});
    EXPECT_THAT(outcome(many).error, HasSubstr("9 tensors"));
    EXPECT_THAT(outcome(many).error, HasSubstr("and 5 more"));
}

struct Foreign {
    const char* key;
    gguf::Value changes, neutral;  // neutral: none if it is the same
};

TEST_P(EveryGolden, ForeignKeysRefuseUnlessTheyAreNeutral) {
    const EditedModel model(golden_model(GetParam()));
    const std::string prefix = model.architecture() + ".";
    const gguf::Array clamps = std::vector<float>{0, 7}, none = std::vector<float>{0, 0};
    const Foreign cases[] = {
        {"attn_logit_softcapping", 50.0f, 0.0f},
        {"final_logit_softcapping", 30.0f, 0.0f},
        {"router_logit_softcapping", 30.0f, 0.0f},
        {"logit_scale", 0.0625f, 1.0f},
        {"residual_scale", 0.22f, 1.0f},
        {"embedding_scale", 12.0f, 0.0f},
        {"attention.clamp_kqv", 8.0f, 0.0f},
        {"attention.max_alibi_bias", 8.0f, 0.0f},
        {"attention.causal", false, true},
        {"attention.sliding_window", uint32_t{17}, uint32_t{1} << 20},
        {"attention.temperature_scale", 0.1f, 0.0f},
        {"attention.output_scale", 0.5f, 1.0f},
        {"attention.value_scale", 0.5f, 1.0f},
        {"swiglu_clamp_exp", clamps, none},
        {"use_parallel_residual", true, false},
        {"swin_norm", true, false},
        {"decoder_block_count", uint32_t{4}, uint32_t{0}},
        {"expert_group_scale", 0.05f, 1.0f},
        {"interleave_moe_layer_step", uint32_t{2}, uint32_t{1}},
        {"hidden_activation", std::string("gelu"), std::string("silu")},
        {"rope.dimension_sections", gguf::Array(std::vector<int32_t>{16, 24, 24, 0}), gguf::Value(uint32_t{0})},
        {"rope.freq_base_swa", 10000.0f, {}},
        {"rope.scaling.yarn_attn_factor", 1.5f, 1.0f},
        {"attention.layer_norm_epsilon_of_heads", 1e-5f, {}},
        {"attention.sink_count", uint32_t{4}, {}},
        {"some_future_router_bias", true, {}},
        {"yet_another_gate", uint32_t{1}, {}},
        {"ssm.conv_kernel", uint32_t{4}, {}},
    };
    const bool dense = std::ranges::none_of(
        model.tensors, [](const EditedModel::Tensor& tensor) { return tensor.name.find("exps") != std::string::npos; });
    const std::set<std::string_view> of_experts = {"router_logit_softcapping", "swiglu_clamp_exp", "expert_group_scale",
                                                   "interleave_moe_layer_step"};
    const std::string architecture = model.architecture();
    std::set<std::string_view> computed;
    if (architecture == "minicpm3") {
        computed = {"embedding_scale", "residual_scale", "logit_scale"};
    } else if (std::ranges::any_of(model.tensors, [](const EditedModel::Tensor& tensor) {
                   return tensor.name.find("attn_kv_a_mqa") != std::string::npos;
               })) {
        computed = {"attention.temperature_scale"};
    }
    if (architecture == "minicpm") computed = {"embedding_scale", "residual_scale", "logit_scale"};
    for (const char* one : {"llama", "qwen3", "qwen3moe", "phi3", "exaone4"}) {
        if (architecture == one) computed.insert("attention.sliding_window");
    }
    if (architecture == "gemma3") computed.insert("rope.freq_base_swa");
    if (architecture == "mimo2") computed.insert("attention.value_scale");
    // Of a model of Granite 4 whose layers all have attention.
    if (architecture.starts_with("granite")) computed.insert("ssm.conv_kernel");
    // Of text all sections of a rotary embedding have the same position.
    if (architecture == "qwen2" || architecture == "qwen3" || architecture == "qwen3moe")
        computed.insert("rope.dimension_sections");
    for (const Foreign& one : cases) {
        if ((dense && of_experts.contains(one.key)) || model.has_key(prefix + one.key)) continue;
        if (computed.contains(one.key)) continue;
        SCOPED_TRACE(one.key);
        EditedModel added = model;
        added.set(prefix + one.key, one.changes);
        const Outcome result = outcome(added);
        EXPECT_THAT(result.error, HasSubstr(prefix + one.key));
        EXPECT_TRUE(outcome(added, true).names(prefix + one.key));
        if (one.neutral == gguf::Value{}) continue;
        added.set(prefix + one.key, one.neutral);
        EXPECT_EQ(outcome(added).error, "");
    }
    EditedModel harmless = model;
    harmless.set(prefix + "tensor_data_layout", std::string("Meta AI original pth"));
    harmless.set(prefix + "remark", std::string("made on a Tuesday"));
    const Outcome result = outcome(harmless);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.names(prefix + "remark"));
    EXPECT_FALSE(result.names(prefix + "tensor_data_layout"));
}

INSTANTIATE_TEST_SUITE_P(Models, EveryGolden, testing::ValuesIn(golden_models()), [](const auto& instance) {
    std::string name = instance.param;
    std::ranges::replace(name, '-', '_');
    return name;
});

std::vector<float> random_values(size_t count, float size) {
    std::mt19937 random(11);
    std::normal_distribution<float> normal(0, size);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
}

TEST_F(Claims, TheMultiplierOfYarnMayStandWithoutYarn) {
    EditedModel model(golden_model("mistral3"));
    model.set("mistral3.rope.scaling.type", std::string("none"));
    EXPECT_EQ(outcome(model).error, "");
}

TEST_F(Claims, TheOutputsBiasIsAdded) {
    for (const char* name : {"llama-gqa", "v3-groups", "qwen3moe-norm"}) {
        const EditedModel model(golden_model(name));
        std::vector<float> expected = logits(model);
        EditedModel biased = model;
        const size_t vocabulary = expected.size() / std::size(kTokens);
        const std::vector<float> bias = random_values(vocabulary, 2);
        biased.add("output.bias", {vocabulary}, bias);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % vocabulary];
        expect_same(logits(biased), expected);
    }
}

TEST_F(Claims, BiasesAreThoseOfAPlainReference) {
    EditedModel model(golden_model("llama-plain"));
    const PlainLlama::Sizes sizes{3, 4, 4, 16, 96, 1e-6, 10000};
    const auto expect_reference = [&] {
        const std::vector<double> expected = PlainLlama(model, sizes).logits(kTokens);
        expect_same(logits(model), {expected.begin(), expected.end()}, 1e-4);
    };
    expect_reference();
    for (const auto& [part, length] : {std::pair<const char*, size_t>{"attn_q", 64},
                                       {"attn_k", 64},
                                       {"attn_v", 64},
                                       {"attn_output", 64},
                                       {"ffn_gate", 96},
                                       {"ffn_up", 96},
                                       {"ffn_down", 64}}) {
        SCOPED_TRACE(part);
        const std::vector<float> before = logits(model);
        for (int layer = 0; layer < 3; ++layer)
            model.add("blk." + std::to_string(layer) + "." + part + ".bias", {length}, random_values(length, 1));
        EXPECT_NE(logits(model), before);
        expect_reference();
    }
}

TEST_F(Claims, ABiasOfOneLayerAloneRefuses) {
    EditedModel model(golden_model("llama-plain"));
    model.add("blk.1.attn_q.bias", {64}, random_values(64, 1));
    EXPECT_THAT(outcome(model).error, HasSubstr("blk.0.attn_q.bias is missing"));
}

TEST_F(Claims, OldKeysOfRopeScalingAreTheNewOnes) {
    EditedModel linear(golden_model("llama-plain")), old = linear, alone = linear, none = linear;
    linear.set("llama.rope.scaling.type", std::string("linear"));
    linear.set("llama.rope.scaling.factor", 4.0f);
    old.set("llama.rope.scale_linear", 4.0f);
    alone.set("llama.rope.scaling.factor", 4.0f);
    const std::vector<float> expected = logits(linear);
    EXPECT_EQ(logits(old), expected);
    EXPECT_EQ(logits(alone), expected);
    EXPECT_NE(logits(none), expected);
    EXPECT_TRUE(outcome(alone).names("llama.rope.scaling.type linear"));
    none.set("llama.rope.scaling.factor", 4.0f);
    none.set("llama.rope.scaling.type", std::string("none"));
    EXPECT_TRUE(outcome(none).names("llama.rope.scaling.factor 4 not used"));
    old.set("llama.rope.scaling.factor", 2.0f);
    EXPECT_THAT(outcome(old).error, HasSubstr("llama.rope.scale_linear"));
}

TEST_F(Claims, WithoutATypeYarnIsNotLinear) {
    EditedModel model(golden_model("v3-yarn"));
    model.remove_key("deepseek2.rope.scaling.type");
    EXPECT_THAT(outcome(model).error, HasSubstr("deepseek2.rope.scaling.yarn_log_multiplier"));
}

TEST_F(Claims, GatingFollowsTheBiasOfSelection) {
    EditedModel model(golden_model("v3-groups"));
    const std::vector<float> expected = logits(model);
    model.remove_key("deepseek2.expert_gating_func");
    EXPECT_TRUE(outcome(model).names("deepseek2.expert_gating_func 2 (sigmoid"));
    EXPECT_EQ(logits(model), expected);
    model.set("deepseek2.expert_gating_func", uint32_t{3});
    EXPECT_THAT(outcome(model).error, HasSubstr("deepseek2.expert_gating_func is 3"));
}

TEST_F(Claims, SharedExpertsAreThereWithoutTheirCount) {
    EditedModel model(golden_model("v2-plain"));
    const std::vector<float> expected = logits(model);
    model.remove_key("deepseek2.expert_shared_count");
    EXPECT_TRUE(outcome(model).names("deepseek2.expert_shared_count"));
    EXPECT_EQ(logits(model), expected);
    model.set("deepseek2.expert_shared_count", uint32_t{0});
    EXPECT_THAT(outcome(model).error, HasSubstr("shexp"));
}

TEST_F(Claims, NoExpertsIsDense) {
    EditedModel model(golden_model("llama-plain"));
    const std::vector<float> expected = logits(model);
    model.set("llama.expert_count", uint32_t{0});
    model.set("llama.expert_used_count", uint32_t{0});
    EXPECT_EQ(logits(model), expected);
}

struct Converter {
    const char* writes;
    const char* golden;
    std::vector<std::pair<std::string, gguf::Value>> keys;
};

TEST_F(Claims, KeysThatConvertersWriteAreNoObstacle) {
    const std::vector<std::pair<std::string, gguf::Value>> of_every_text_model = {
        {"attention.layer_norm_epsilon", 1e-5f},
        {"expert_used_count", uint32_t{2}},
        {"expert_group_count", uint32_t{8}},
        {"expert_group_used_count", uint32_t{4}},
        {"expert_gating_func", uint32_t{1}},
        {"expert_weights_norm", false},
        {"expert_weights_scale", 1.0f},
        {"leading_dense_block_count", uint32_t{1}},
        {"expert_feed_forward_length", uint32_t{96}}};
    const Converter converters[] = {
        {"a dense model with the keys of experts", "llama-plain", of_every_text_model},
        {"and with their number", "llama-gqa", {{"expert_count", uint32_t{0}}, {"expert_used_count", uint32_t{0}}}},
        {"gating that is computed for no one", "llama-gqa", {{"expert_gating_func", uint32_t{0}}}},
        {"both epsilons", "qwen3moe-norm", {{"attention.layer_norm_epsilon", 1e-5f}}},
        {"both epsilons", "v2-plain", {{"attention.layer_norm_epsilon", 1e-6f}}},
    };
    for (const Converter& one : converters) {
        SCOPED_TRACE(one.writes);
        EditedModel model(golden_model(one.golden));
        const std::vector<float> before = logits(model);
        for (const auto& [key, value] : one.keys) model.set(model.architecture() + "." + key, value);
        EXPECT_EQ(outcome(model).error, "");
        expect_same(logits(model), before);
    }
}

// As llama.cpp's converter writes a dense model of latent attention: lengths of experts, but no experts.
TEST_F(Claims, LatentAttentionMayBeDense) {
    EditedModel model(golden_model("v2-plain"));
    std::erase_if(model.tensors, [](const EditedModel::Tensor& tensor) {
        return tensor.name.find("exps") != std::string::npos || tensor.name.find("shexp") != std::string::npos ||
               tensor.name.find("gate_inp") != std::string::npos;
    });
    model.set("deepseek2.feed_forward_length", uint32_t{96});
    const size_t embedding = gguf::GgufFile::open(golden_model("v2-plain")).tensor("token_embd.weight").dims[0];
    for (int layer = 0; layer < 8; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        const auto has = [&](const std::string& name) {
            return std::ranges::find(model.tensors, name, &EditedModel::Tensor::name) != model.tensors.end();
        };
        if (!has(block + "attn_norm.weight")) break;
        for (const char* part : {"ffn_gate", "ffn_up", "ffn_down"}) {
            const std::string name = block + part + ".weight";
            std::erase_if(model.tensors, [&](const EditedModel::Tensor& tensor) { return tensor.name == name; });
            const bool down = std::string_view(part) == "ffn_down";
            model.add(name, {down ? 96 : embedding, down ? embedding : 96}, std::vector<float>(96 * embedding, 0.01f));
        }
    }
    model.remove_key("deepseek2.expert_count");
    model.set("deepseek2.expert_shared_count", uint32_t{0});
    model.set("deepseek2.expert_feed_forward_length", uint32_t{96});
    model.set("deepseek2.expert_weights_scale", 1.0f);
    model.set("deepseek2.expert_gating_func", uint32_t{1});
    model.set("deepseek2.leading_dense_block_count", uint32_t{1});
    EXPECT_EQ(outcome(model).error, "");
}

TEST_F(Claims, NumbersThatStandForNoneAreAsMissing) {
    const std::pair<std::string, gguf::Value> none[] = {
        {"rope.scaling.yarn_ext_factor", -1.0f},
        {"rope.scaling.original_context_length", uint32_t{0}},
        {"rope.scaling.original_context_length", int32_t{-1}},
        {"rope.scaling.attn_factor", 0.0f},
        {"rope.scaling.yarn_beta_fast", -1.0f},
        {"attention.sliding_window", int32_t{-1}},
        {"attention.sliding_window", uint32_t{0}},
        {"attention.scale", 0.0f},
        {"hidden_act", std::string("silu")},
        {"hidden_activation", std::string("silu")},
    };
    EditedModel plain(golden_model("llama-plain")), yarn = plain;
    yarn.set("llama.rope.scaling.type", std::string("yarn"));
    yarn.set("llama.rope.scaling.factor", 4.0f);
    for (const EditedModel& model : {plain, yarn}) {
        const std::vector<float> expected = logits(model);
        for (const auto& [key, value] : none) {
            SCOPED_TRACE(key);
            EditedModel with = model;
            with.set("llama." + key, value);
            EXPECT_EQ(outcome(with).error, "");
            EXPECT_EQ(logits(with), expected);
        }
    }
}

// As in llama.cpp: whatever the type, the one scales sine and cosine, and the other mixes scaled positions with plain
// ones. Without a scale there is nothing to mix.
TEST_F(Claims, FactorsOfYarnBelongToEveryType) {
    for (const char* name : {"llama-plain", "qwen3moe-norm"}) {
        const EditedModel plain(golden_model(name));
        const std::string rope = plain.architecture() + ".rope.scaling.";
        const auto with = [&](const char* type, float ext_factor, float attn_factor) {
            EditedModel model = plain;
            model.set(rope + "type", std::string(type));
            model.set(rope + "factor", 4.0f);
            model.set(rope + "yarn_ext_factor", ext_factor);
            model.set(rope + "attn_factor", attn_factor);
            return model;
        };
        const std::vector<float> none = logits(plain), linear = logits(with("linear", 0, 1));
        EXPECT_EQ(logits(with("none", 1, 1)), none);
        EXPECT_NE(logits(with("none", 1, 0.5f)), none);
        EXPECT_EQ(logits(with("linear", 1, 1)), logits(with("yarn", 1, 1)));
        EXPECT_NE(logits(with("linear", 1, 1)), linear);
        EXPECT_NE(logits(with("linear", 0, 0.5f)), linear);
        EXPECT_EQ(logits(with("linear", 0, 0.5f)), logits(with("yarn", 0, 0.5f)));
    }
}

TEST_F(Claims, RefusalsNameTheKeyAndSayWhatToDo) {
    EditedModel model(golden_model("llama-plain"));
    model.set("llama.attention.value_length", uint32_t{8});
    EXPECT_THAT(outcome(model).error, HasSubstr("blk.0.attn_v.weight has the shape"));
    model = EditedModel(golden_model("llama-plain"));
    model.set("llama.attention.head_count_kv", uint32_t{3});
    EXPECT_THAT(outcome(model).error, HasSubstr("not a multiple of llama.attention.head_count_kv, 3"));
    model = EditedModel(golden_model("llama-plain"));
    for (const char* type : {"longrope", "llama3", "dynamic"}) {
        model.set("llama.rope.scaling.type", std::string(type));
        const Outcome refused = outcome(model);
        EXPECT_THAT(refused.error, HasSubstr("llama.rope.scaling.type is '" + std::string(type)));
        EXPECT_THAT(refused.advice, testing::ElementsAre(Advice{AdviceCode::kRopeScaling, "none, linear or yarn"}));
    }
}

TEST_F(Claims, KeysOfOtherPrefixesAreSaid) {
    EditedModel model(golden_model("llama-plain"));
    model.set("mistral.attention.sliding_window", uint32_t{4096});
    model.set("quantize.imatrix.entries_count", int32_t{7});
    const Outcome result = outcome(model);
    EXPECT_EQ(result.error, "");
    EXPECT_TRUE(result.names("mistral.attention.sliding_window = 4096"));
    EXPECT_FALSE(result.names("imatrix"));
}

TEST_F(Claims, SharedExpertsMayBeToldByTheirLengthTogether) {
    EditedModel model(golden_model("v2-plain"));
    const std::vector<float> expected = logits(model);
    const auto length = static_cast<uint32_t>(model.tensor("blk.1.ffn_gate_shexp.weight").dims[1]);
    model.set("deepseek2.expert_shared_feed_forward_length", length);
    EXPECT_EQ(logits(model), expected);
    model.remove_key("deepseek2.expert_shared_count");
    EXPECT_EQ(logits(model), expected);
    model.set("deepseek2.expert_shared_feed_forward_length", length + 32);
    EXPECT_THAT(outcome(model).error, HasSubstr("shexp"));
    model.set("deepseek2.expert_shared_count", uint32_t{1});
    EXPECT_THAT(outcome(model).error, HasSubstr("deepseek2.expert_shared_feed_forward_length is "));
}

TEST_F(Claims, ARefusedKeySaysWhatIsComputed) {
    EditedModel model(golden_model("llama-plain"));
    model.set("llama.logit_scale", 0.5f);
    EXPECT_THAT(outcome(model).error, HasSubstr("llama.logit_scale = 0.5 (computed: not scaled)"));
    model.set("llama.logit_scale", 1.0f);
    model.set("llama.embedding_length", uint32_t{0xFFFFFFFF});
    EXPECT_THAT(outcome(model).error, HasSubstr("expected 1 to 2147483647"));
}

// A model of images and text whose file has the text's part computes text as the model of text does.
TEST_F(Claims, TheTextOfAModelOfImagesIsComputed) {
    for (const auto& [golden, name] :
         {std::pair{"qwen2", "qwen2vl"}, {"qwen3-tied", "qwen3vl"}, {"qwen3moe-norm", "qwen3vlmoe"}}) {
        SCOPED_TRACE(name);
        const EditedModel text(golden_model(golden));
        EditedModel images = text;
        images.rename_architecture(name);
        images.set(std::string(name) + ".rope.dimension_sections", gguf::Array(std::vector<int32_t>{4, 2, 2, 0}));
        EXPECT_EQ(outcome(images).error, "");
        EXPECT_EQ(logits(images), logits(text));
        if (std::string_view(name) == "qwen2vl") continue;
        images.set(std::string(name) + ".n_deepstack_layers", uint32_t{3});
        EXPECT_EQ(outcome(images).error, "");
        EXPECT_TRUE(outcome(images).names("images are not computed"));
    }
}

TEST_F(Claims, AnAdapterIsNoModel) {
    EditedModel model(golden_model("llama-plain"));
    model.set("general.type", std::string("model"));
    EXPECT_EQ(outcome(model).error, "");
    model.set("general.type", std::string("adapter"));
    EXPECT_THAT(outcome(model).error, HasSubstr("general.type is 'adapter'"));
}

// The first rows or, of each row, the first elements of an f16 matrix [columns, rows].
void keep(EditedModel::Tensor& matrix, uint64_t columns, uint64_t rows) {
    constexpr size_t kHalf = 2;
    std::vector<std::byte> kept;
    for (uint64_t row = 0; row < rows; ++row) {
        const auto at = matrix.bytes.begin() + static_cast<ptrdiff_t>(row * matrix.dims[0] * kHalf);
        kept.insert(kept.end(), at, at + static_cast<ptrdiff_t>(columns * kHalf));
    }
    matrix.bytes = std::move(kept);
    matrix.dims = {columns, rows};
}

// A layer with fewer heads and a shorter network is the full one whose other heads and elements give nothing.
TEST_F(Claims, ArraysAreANumberALayer) {
    EditedModel cut(golden_model("llama-gqa"));
    EditedModel full = cut;
    for (const char* name : {"blk.1.attn_output.weight", "blk.2.ffn_down.weight"}) {
        EditedModel::Tensor& matrix = full.tensor(name);
        const size_t row = matrix.bytes.size() / matrix.dims[1], kept = name[4] == '1' ? row / 2 : row / 3 * 2;
        for (size_t at = 0; at < matrix.bytes.size(); at += row)
            std::fill_n(matrix.bytes.begin() + static_cast<ptrdiff_t>(at + kept), row - kept, std::byte{0});
    }
    cut.set("llama.attention.head_count", gguf::Array(std::vector<int32_t>{8, 4, 8}));
    cut.set("llama.attention.head_count_kv", gguf::Array(std::vector<int32_t>{2, 1, 2}));
    cut.set("llama.feed_forward_length", gguf::Array(std::vector<int32_t>{96, 96, 64}));
    keep(cut.tensor("blk.1.attn_q.weight"), 64, 128);
    keep(cut.tensor("blk.1.attn_k.weight"), 64, 32);
    keep(cut.tensor("blk.1.attn_v.weight"), 64, 32);
    keep(cut.tensor("blk.1.attn_output.weight"), 128, 64);
    keep(cut.tensor("blk.2.ffn_gate.weight"), 64, 64);
    keep(cut.tensor("blk.2.ffn_up.weight"), 64, 64);
    keep(cut.tensor("blk.2.ffn_down.weight"), 64, 64);
    EXPECT_EQ(outcome(cut).error, "");
    expect_same(logits(cut), logits(full));
    cut.set("llama.attention.head_count_kv", gguf::Array(std::vector<int32_t>{2, 3, 2}));
    EXPECT_THAT(outcome(cut).error, HasSubstr("head_count is 4, which is not a multiple of"));
    EXPECT_THAT(outcome(cut).error, HasSubstr("(layer 1)"));
}

TEST_F(Claims, ArraysOfEqualNumbersAreOneNumber) {
    EditedModel model(golden_model("llama-gqa"));
    const std::vector<float> expected = logits(model);
    model.set("llama.feed_forward_length", gguf::Array(std::vector<int32_t>{96, 96, 96}));
    EXPECT_EQ(logits(model), expected);
    model.set("llama.feed_forward_length", gguf::Array(std::vector<int32_t>{96, 96, 64}));
    EXPECT_THAT(outcome(model).error, HasSubstr("blk.2.ffn_gate.weight has the shape [64, 96]"));
    model.set("llama.feed_forward_length", gguf::Array(std::vector<uint8_t>(100000, 96)));
    EXPECT_THAT(outcome(model).error, HasSubstr("llama.feed_forward_length has 100000 elements"));
    model.set("llama.feed_forward_length", gguf::Array(std::vector<int32_t>{96, 96}));
    EXPECT_THAT(outcome(model).error, HasSubstr("2 elements; expected a number, or 3 of them"));
    model.set("llama.feed_forward_length", int32_t{96});
    model.set("llama.block_count", gguf::Array(std::vector<int32_t>{3, 3, 3}));
    EXPECT_THAT(outcome(model).error, HasSubstr("llama.block_count"));
}

// Experts that are all the same are one dense network, whatever the router says, as weights are normalised.
TEST_F(Claims, LlamaFilesMayHaveExperts) {
    const EditedModel dense(golden_model("llama-plain"));
    EditedModel model = dense;
    model.set("llama.expert_count", uint32_t{4});
    model.set("llama.expert_used_count", uint32_t{2});
    for (int layer = 0; layer < 3; ++layer) {
        const std::string block = "blk." + std::to_string(layer) + ".";
        for (const char* part : {"ffn_gate", "ffn_up", "ffn_down"}) {
            EditedModel::Tensor& tensor = model.tensor(block + part + ".weight");
            tensor.name = block + part + "_exps.weight";
            tensor.dims.push_back(4);
            const std::vector<std::byte> one = tensor.bytes;
            for (int expert = 1; expert < 4; ++expert) tensor.bytes.insert(tensor.bytes.end(), one.begin(), one.end());
        }
        model.add(block + "ffn_gate_inp.weight", {64, 4}, random_values(64 * 4, 1));
    }
    expect_same(logits(model), logits(dense));
    EXPECT_TRUE(outcome(model).names("llama.expert_weights_norm true"));
}

TEST_F(Claims, PredictionLayersAreWhatTheTensorsSay) {
    EditedModel with(golden_model("v3-ungrouped"));
    const std::vector<float> expected = logits(with);
    EXPECT_TRUE(outcome(with).names("blk.2."));
    EditedModel unsaid = with, dropped = with;
    unsaid.remove_key("deepseek2.nextn_predict_layers");
    EXPECT_EQ(logits(unsaid), expected);
    dropped.remove_tensors("blk.2.");
    EXPECT_TRUE(outcome(dropped).names("deepseek2.nextn_predict_layers is 1, but 1 of these layers have no tensors"));
    EXPECT_EQ(logits(dropped), expected);

    EditedModel without(golden_model("v3-groups"));
    const std::vector<float> all = logits(without);
    without.set("deepseek2.nextn_predict_layers", uint32_t{1});
    EXPECT_TRUE(outcome(without).names("deepseek2.nextn_predict_layers"));
    EXPECT_EQ(logits(without), all);
}

// Nor does reading such files take long.
TEST_F(Claims, ImpossibleNumbersOfLayersRefuse) {
    EditedModel model(golden_model("v3-groups"));
    model.set("deepseek2.nextn_predict_layers", uint32_t{0x7FFFFFFE});
    EXPECT_THAT(outcome(model).error, HasSubstr("deepseek2.nextn_predict_layers"));
    model.set("deepseek2.block_count", uint32_t{0x7FFFFFFF});
    EXPECT_THAT(outcome(model).error, HasSubstr("deepseek2.block_count"));

    EditedModel many(golden_model("v3-groups"));
    constexpr uint32_t kLayers = 20'000;
    for (uint32_t layer = 3; layer < kLayers; ++layer) many.add("blk." + std::to_string(layer) + ".nextn.x", {1}, {1});
    many.set("deepseek2.block_count", kLayers);
    EXPECT_THAT(outcome(many).error, HasSubstr("more than 64 of the last layers have nextn tensors"));
}

TEST_F(Claims, AnIndexerIsKnownAndSaid) {
    EditedModel model(golden_model("v3-groups"));
    const std::vector<float> expected = logits(model);
    for (int layer = 0; layer < 3; ++layer)
        model.add("blk." + std::to_string(layer) + ".indexer.k_norm.weight", {16}, random_values(16, 1));
    model.set("deepseek2.attention.indexer.top_k", uint32_t{2048});
    EXPECT_TRUE(outcome(model).names("indexer"));
    EXPECT_TRUE(outcome(model).names("deepseek2.attention.indexer.top_k"));
    EXPECT_EQ(logits(model), expected);
}

TEST_F(Claims, FactorsOfOneAreNothing) {
    EditedModel model(golden_model("v3-groups"));
    const std::vector<float> expected = logits(model);
    model.add("rope_freqs.weight", {8}, std::vector<float>(8, 1.0f));
    EXPECT_EQ(logits(model), expected);
    EXPECT_TRUE(outcome(model).names("rope_freqs.weight"));
    for (const auto& [count, factor] : {std::pair<size_t, float>{8, 2.0f}, {4, 1.0f}, {16, 1.0f}}) {
        model.remove_tensors("rope_freqs");
        model.add("rope_freqs.weight", {count}, std::vector<float>(count, factor));
        EXPECT_THAT(outcome(model).error, HasSubstr("rope_freqs.weight"));
    }
}

// A value of f32 that f16 and bf16 hold, too.
TEST_F(Claims, SmallVectorsMayBeOfHalfPrecision) {
    for (const char* name : {"llama-gqa", "v3-groups", "qwen3moe-norm"}) {
        EditedModel full(golden_model(name));
        for (EditedModel::Tensor& tensor : full.tensors) {
            if (tensor.type != TSR_TYPE_F32 || tensor.dims.size() != 1) continue;
            std::vector<float> values(tensor.dims[0]);
            std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
            for (float& value : values) value = std::round(value * 32) / 32;
            std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
        }
        const std::vector<float> expected = logits(full);
        for (const bool brain : {false, true}) {
            EditedModel halves = full;
            for (EditedModel::Tensor& tensor : halves.tensors) {
                if (tensor.type != TSR_TYPE_F32 || tensor.dims.size() != 1) continue;
                std::vector<std::byte> bytes(2 * tensor.dims[0]);
                for (size_t i = 0; i < tensor.dims[0]; ++i) {
                    float value;
                    std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
                    if (brain) {
                        std::memcpy(bytes.data() + 2 * i, reinterpret_cast<const std::byte*>(&value) + 2, 2);
                    } else {
                        const auto half = static_cast<_Float16>(value);
                        std::memcpy(bytes.data() + 2 * i, &half, 2);
                    }
                }
                tensor.type = brain ? TSR_TYPE_BF16 : TSR_TYPE_F16;
                tensor.bytes = std::move(bytes);
            }
            EXPECT_EQ(logits(halves), expected) << name;
        }
    }
}

}  // namespace
}  // namespace tessera::test
