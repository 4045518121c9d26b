// What the lowerings of mla_attention say and write.
#include "mla_layer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Builds and returns the failure's message; empty if it went well.
std::string build(const MlaLayer& layer, const tsr_lowering* lowering, RecordingBuilder& builder,
                  tsr_code* code = nullptr) {
    const tsr_status* status = lowering->build(lowering, &layer.node()->node, &layer.options, &builder.table);
    if (!status) return "";
    std::string message = status->message;
    if (code) *code = status->code;
    status->destroy(status);
    return message;
}

TEST(MlaOperator, NamesFamiliesAndPriorities) {
    const tsr_operator* op = mla_operator();
    ASSERT_NE(op, nullptr);
    EXPECT_STREQ(op->name, "mla_attention");
    int32_t last = INT32_MAX;
    for (uint32_t i = 0; i < op->lowering_count; ++i) {
        const tsr_lowering& l = *op->lowerings[i];
        EXPECT_STREQ(l.family, *l.name == '0' ? "expanded" : "latent");
        EXPECT_LT(l.priority, last) << "3 is the default, and flash attention comes before tiles";
        last = l.priority;
        EXPECT_NE(std::string(l.summary), "");
    }
}

TEST(MlaOperator, InfersItsShape) {
    MlaLayer layer({}, Files::kWhole, TSR_TYPE_F32, false);
    tsr_tensor out{};
    tsr_tensor* outputs[] = {&out};
    ASSERT_EQ(mla_operator()->infer(mla_operator(), &layer.node()->node, outputs), nullptr);
    EXPECT_EQ(out.rank, 2u);
    EXPECT_EQ(out.dims[0], layer.s.v * layer.s.heads);
    EXPECT_EQ(out.dims[1], MlaLayer::kRows);
    EXPECT_EQ(out.range, TSR_RANGE_ROWS);
    EXPECT_EQ(out.strides[1], 4 * out.dims[0]);
}

TEST(MlaOperator, ComponentsOfTheCache) {
    MlaLayer layer({4, 128, 64, 128, 512}, Files::kWhole, TSR_TYPE_F32, false);
    tsr_cache_component c[2] = {};
    tsr_cache_component* components[] = {&c[0], &c[1]};
    uint32_t count = 2;
    const tsr_lowering* latent = mla_lowering("3", 0);
    ASSERT_EQ(latent->components(latent, &layer.node()->node, components, &count), nullptr);
    EXPECT_EQ(count, 1u);
    EXPECT_STREQ(c[0].name, "latent");
    EXPECT_EQ(c[0].elements, 576);
    EXPECT_EQ(c[0].value, 0u);
    const tsr_lowering* expanded = mla_lowering("0", 0);
    count = 2;
    ASSERT_EQ(expanded->components(expanded, &layer.node()->node, components, &count), nullptr);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(c[0].elements, 4 * 192);
    EXPECT_EQ(c[1].elements, 4 * 128);
    EXPECT_EQ(c[1].value, 1u);
}

TEST(MlaOperator, SaysWhatDoesNotFit) {
    const auto failure = [](auto&& spoil) {
        MlaLayer layer({}, Files::kWhole, TSR_TYPE_F32, false);
        spoil(layer);
        tsr_tensor out{};
        tsr_tensor* outputs[] = {&out};
        const tsr_status* status = mla_operator()->infer(mla_operator(), &layer.node()->node, outputs);
        if (!status) return std::string("nothing");
        EXPECT_EQ(status->code, TSR_INVALID_ARGUMENT);
        std::string message = status->message;
        status->destroy(status);
        return message;
    };
    EXPECT_EQ(failure([](MlaLayer&) {}), "nothing");
    EXPECT_THAT(failure([](MlaLayer& l) { l.wkv_b = {}; }), HasSubstr("attn_kv_b"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.wkv_b.desc.dims[1] -= 1; }),
                HasSubstr("wkv_b is [64, 255]; expected [64, 256]"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.kv.desc.dims[0] = 64; }), HasSubstr("kv is [64, 24]"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.q = {}; }), HasSubstr("q is missing"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.q.desc.type = TSR_TYPE_F16; }), HasSubstr("type 1"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.q.desc.range = TSR_RANGE_FIXED; }), HasSubstr("ranges"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.attributes[0].i = 0; }), HasSubstr("heads"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.attributes[0].i = int64_t{1} << 62; }), HasSubstr("heads"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.attributes[6].f = 0; }), HasSubstr("scale"));
    EXPECT_THAT(failure([](MlaLayer& l) { l.positions.desc.dims[0] = 3; }), HasSubstr("positions"));
}

TEST(MlaLowering, ThreeWritesTwoBranchesOverTwoRanges) {
    MlaLayer layer({}, Files::kWhole, TSR_TYPE_Q4_0, false);
    layer.options.scratch_bytes = 1 << 20;
    const tsr_lowering* lowering = mla_lowering("3", 0);
    RecordingBuilder builder(layer.inputs(), layer.caches(*lowering, TSR_TYPE_F16));
    ASSERT_EQ(build(layer, lowering, builder), "");
    EXPECT_THAT(builder.ops(), ElementsAre("rms_norm", "rope", "cache_write", "rope", "flash_attention", "matmul",
                                           "rope", "flash_attention", "matmul"));
    EXPECT_TRUE(builder.ops(TSR_STAGE_INIT).empty());
    const auto* prompt = builder.find("attend_projected");
    const auto* generation = builder.find("attend_absorbed");
    EXPECT_NE(prompt->inputs[6], 0u);
    EXPECT_EQ(prompt->inputs[2], 0u);
    EXPECT_EQ(builder.values[prompt->inputs[0]].desc.range, TSR_RANGE_PROMPT_ROWS);
    EXPECT_EQ(builder.values[prompt->outputs[0]].desc.range, TSR_RANGE_PROMPT_ROWS);
    EXPECT_EQ(builder.values[generation->inputs[0]].desc.range, TSR_RANGE_GENERATION_ROWS);
    EXPECT_EQ(builder.values[generation->inputs[0]].desc.dims[0], 64 + 16);
    EXPECT_EQ(generation->integer("head_dim_v"), 64);
    EXPECT_EQ(generation->integer("scratch_bytes"), 1 << 20);
    EXPECT_EQ(prompt->integer("scratch_bytes"), 1 << 20);
    EXPECT_EQ(builder.values[builder.result].desc.range, TSR_RANGE_ROWS);
}

TEST(MlaLowering, TwoGeneratesInTiles) {
    MlaLayer layer({}, Files::kWhole, TSR_TYPE_F32, false);
    RecordingBuilder builder(layer.inputs(), layer.caches(*mla_lowering("2", 0), TSR_TYPE_F16));
    ASSERT_EQ(build(layer, mla_lowering("2", 0), builder), "");
    EXPECT_EQ(builder.find("attend_projected")->op, "flash_attention");
    EXPECT_EQ(builder.find("attend_absorbed")->op, "tiled_attention");
}

TEST(MlaLowering, WithoutFlashAttentionOnlyTiles) {
    MlaLayer layer({}, Files::kWhole, TSR_TYPE_F32, false);
    layer.options.flash_attention = 0;
    for (const char* name : {"0", "1", "2", "3"}) {
        tsr_code code = TSR_OK;
        RecordingBuilder declined(layer.inputs(), layer.caches(*mla_lowering(name, 0), TSR_TYPE_F16));
        EXPECT_THAT(build(layer, mla_lowering(name, 0), declined, &code), HasSubstr("switched off")) << name;
        EXPECT_EQ(code, TSR_UNSUPPORTED);
        RecordingBuilder tiles(layer.inputs(), layer.caches(*mla_lowering(name, 1), TSR_TYPE_F16));
        const std::string message = build(layer, mla_lowering(name, 1), tiles);
        if (*name == '3') {
            EXPECT_THAT(message, HasSubstr("switched off"));
        } else {
            EXPECT_EQ(message, "");
            EXPECT_THAT(tiles.ops(), Not(Contains("flash_attention")));
            EXPECT_THAT(tiles.ops(), Contains("tiled_attention"));
        }
    }
}

TEST(MlaLowering, WeightsAreDerivedOnlyWhereAsked) {
    const auto init = [](const char* name, Files files, bool derive, tsr_type type, MlaSizes sizes = {}) {
        MlaLayer layer(sizes, files, type, false);
        layer.options.derive_weights = derive;
        RecordingBuilder builder(layer.inputs(), layer.caches(*mla_lowering(name, 0), TSR_TYPE_F16));
        EXPECT_EQ(build(layer, mla_lowering(name, 0), builder), "");
        std::vector<int64_t> types;
        for (const auto& r : builder.nodes) {
            if (r.stage == TSR_STAGE_INIT) types.push_back(r.integer("type"));
        }
        return types;
    };
    EXPECT_THAT(init("1", Files::kWhole, false, TSR_TYPE_Q4_0), ElementsAre());
    EXPECT_THAT(init("1", Files::kWhole, true, TSR_TYPE_Q4_0), ElementsAre(TSR_TYPE_Q8_0));
    EXPECT_THAT(init("1", Files::kWhole, true, TSR_TYPE_BF16), ElementsAre(TSR_TYPE_BF16));
    EXPECT_THAT(init("1", Files::kWhole, true, TSR_TYPE_Q8_0, {2, 48, 16, 16, 64}), ElementsAre(TSR_TYPE_F16));
    EXPECT_THAT(init("1", Files::kSplit, true, TSR_TYPE_Q4_0), ElementsAre());
    EXPECT_THAT(init("0", Files::kSplit, true, TSR_TYPE_Q4_0), ElementsAre(TSR_TYPE_Q8_0));
    EXPECT_THAT(init("3", Files::kSplit, true, TSR_TYPE_F16), ElementsAre(TSR_TYPE_F16));
    EXPECT_THAT(init("3", Files::kBoth, true, TSR_TYPE_F32), ElementsAre());
    EXPECT_THAT(init("3", Files::kBoth, false, TSR_TYPE_F32), ElementsAre());
}

TEST(MlaLowering, DeclinesWhatItCannotMake) {
    MlaLayer split({}, Files::kSplit, TSR_TYPE_F32, false);
    tsr_code code = TSR_OK;
    RecordingBuilder one(split.inputs(), split.caches(*mla_lowering("3", 0), TSR_TYPE_F16));
    EXPECT_THAT(build(split, mla_lowering("3", 0), one, &code), HasSubstr("attn_k_b alone"));
    EXPECT_EQ(code, TSR_UNSUPPORTED);

    MlaLayer fixed({}, Files::kWhole, TSR_TYPE_F32, false);
    for (Tensor* t : {&fixed.q, &fixed.kv, &fixed.positions, &fixed.sequences}) t->desc.range = TSR_RANGE_FIXED;
    RecordingBuilder two(fixed.inputs(), fixed.caches(*mla_lowering("2", 0), TSR_TYPE_F16));
    EXPECT_THAT(build(fixed, mla_lowering("2", 0), two, &code), HasSubstr("rows of a batch"));
    EXPECT_EQ(code, TSR_UNSUPPORTED);
}

}  // namespace
}  // namespace tessera::test
