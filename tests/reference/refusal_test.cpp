// What plan refuses, and that it says what was required, supported and missing.
#include "node_builder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::test {
namespace {

using sdk::attribute;
using testing::HasSubstr;

std::mt19937 rng(1);

std::string reason(TestNode& node) {
    const tsr_kernel_plan plan = node.plan(2);
    EXPECT_EQ(plan.supported, 0u);
    return plan.reason;
}

TEST(Refusals, Types) {
    TestNode weight("matmul", {random_floats(rng, {256, 1}), random_floats(rng, {256, 2})},
                    {make_tensor(TSR_TYPE_F32, {2, 1})});
    ASSERT_EQ(weight.plan().supported, 1u);
    weight.desc(1).type = TSR_TYPE_Q4_0_R8;
    const std::string text = reason(weight);
    EXPECT_THAT(text, HasSubstr("required"));
    EXPECT_THAT(text, HasSubstr("supported"));
    EXPECT_THAT(text, HasSubstr("missing"));
    EXPECT_THAT(text, HasSubstr("(202)"));
    weight.desc(1).type = TSR_TYPE_F32;
    weight.desc(0).type = TSR_TYPE_F16;
    EXPECT_THAT(reason(weight), HasSubstr("f16"));
}

TEST(Refusals, ShapesStridesLayoutsAndRanges) {
    const auto fresh = [] {
        return std::make_unique<TestNode>("matmul",
                                          std::vector<Tensor>{random_floats(rng, {8, 3}), random_floats(rng, {8, 2})},
                                          std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {2, 3})});
    };
    auto node = fresh();
    node->desc(1).dims[0] = 9;
    EXPECT_THAT(reason(*node), HasSubstr("the weight with dims[0] = 9; supported: 8"));
    node = fresh();
    node->desc(2).dims[0] = 3;
    EXPECT_THAT(reason(*node), HasSubstr("the output"));
    node = fresh();
    node->desc(0).strides[0] = 8;
    EXPECT_THAT(reason(*node), HasSubstr("8 bytes between elements"));
    node = fresh();
    node->desc(1).layout = "q4_0_x8";
    EXPECT_THAT(reason(*node), HasSubstr("q4_0_x8"));
    node = fresh();
    node->desc(0).range = TSR_RANGE_ROWS;
    EXPECT_THAT(reason(*node), HasSubstr("range"));
    node = fresh();
    node->desc(0).range = 17;
    EXPECT_THAT(reason(*node), HasSubstr("range 17"));
    node = fresh();
    node->desc(1).dims[1] = 0;
    EXPECT_THAT(reason(*node), HasSubstr("dims[1] = 0"));
    node = fresh();
    node->desc(1).rank = 7;
    EXPECT_THAT(reason(*node), HasSubstr("rank"));
    node = fresh();
    node->node.input_count = 1;
    EXPECT_THAT(reason(*node), HasSubstr("inputs"));
    node = fresh();
    node->desc(1).type = TSR_TYPE_NONE;
    EXPECT_THAT(reason(*node), HasSubstr("required no"));
}

TEST(Refusals, PartsOfBlocks) {
    TestNode node("matmul", {random_floats(rng, {32, 1}), random_weight(rng, TSR_TYPE_Q8_0, {32, 2})},
                  {make_tensor(TSR_TYPE_F32, {2, 1})});
    node.desc(0).dims[0] = node.desc(1).dims[0] = 31;
    EXPECT_THAT(reason(node), HasSubstr("whole blocks of 32"));
}

TEST(Refusals, AttentionVariants) {
    const auto make = [](int64_t k, int64_t dv, std::vector<tsr_attribute> attributes) {
        attributes.push_back(attribute("scale", 1.0));
        return std::make_unique<TestNode>(
            "flash_attention",
            std::vector<Tensor>{random_floats(rng, {8, 2, 1}), make_tensor(TSR_TYPE_F16, {k, 64, 1}), Tensor{},
                                integers({1}, {0}), integers({1}, {0}), integers({1, 1}, {0}), Tensor{}, Tensor{}},
            std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {dv, 2, 1})}, attributes);
    };
    EXPECT_EQ(make(8, 4, {})->plan().supported, 1u);
    EXPECT_THAT(reason(*make(9, 4, {})), HasSubstr("the k cache"));
    EXPECT_THAT(reason(*make(8, 9, {})), HasSubstr("values of 9"));
    EXPECT_THAT(reason(*make(8, 4, {attribute("kv_heads", int64_t{2})})), HasSubstr("kv_heads 2"));
    EXPECT_THAT(reason(*make(8, 4, {attribute("head_dim_v", int64_t{5})})), HasSubstr("dims[0] = 4"));
    EXPECT_THAT(reason(*make(8, 4, {attribute("scratch_bytes", int64_t{16})})), HasSubstr("16 bytes of scratch"));
    EXPECT_THAT(reason(*make(8, 4, {attribute("stripes", int64_t{64})})), HasSubstr("attribute 'stripes'"));
    auto typed = make(8, 4, {});
    typed->desc(1).type = TSR_TYPE_Q4_K;
    EXPECT_THAT(reason(*typed), HasSubstr("f32 f16 bf16 q8_0"));
}

TEST(Refusals, RouteAndRope) {
    const auto route = [](std::vector<tsr_attribute> attributes) {
        return std::make_unique<TestNode>(
            "moe_route", std::vector<Tensor>{random_floats(rng, {8, 1})},
            std::vector<Tensor>{make_tensor(TSR_TYPE_I32, {2, 1}), make_tensor(TSR_TYPE_F32, {2, 1})}, attributes);
    };
    const tsr_attribute used = attribute("used", int64_t{2}), gating = attribute("gating", "sigmoid");
    EXPECT_EQ(route({used, gating})->plan().supported, 1u);
    EXPECT_THAT(reason(*route({used})), HasSubstr("gating"));
    EXPECT_THAT(reason(*route({used, gating, attribute("groups", int64_t{3})})), HasSubstr("groups"));
    EXPECT_THAT(reason(*route({gating, attribute("used", int64_t{9})})), HasSubstr("9 experts"));
    EXPECT_THAT(reason(*route({used, gating, attribute("groups", int64_t{8}), attribute("groups_used", int64_t{1})})),
                HasSubstr("1 to 1"));
    TestNode rope("rope", {random_floats(rng, {4, 1, 1}), integers({1}, {0})}, {make_tensor(TSR_TYPE_F32, {4, 1, 1})},
                  {attribute("mode", "spiral"), attribute("base", 1e4)});
    EXPECT_THAT(reason(rope), HasSubstr("norm, neox"));
}

}  // namespace
}  // namespace tessera::test
