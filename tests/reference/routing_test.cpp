// moe_route on cases worked out by hand.
#include "node_builder.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace tessera::test {
namespace {

using sdk::attribute;

struct Routed {
    std::vector<int32_t> ids;
    std::vector<float> weights;
};

Routed route(std::vector<float> logits, std::vector<float> bias, int64_t used, std::vector<tsr_attribute> attributes,
             uint32_t workers = 1) {
    const auto experts = static_cast<int64_t>(logits.size());
    attributes.push_back(attribute("used", used));
    TestNode node("moe_route", {floats({experts, 1}, logits), bias.empty() ? Tensor{} : floats({experts}, bias)},
                  {make_tensor(TSR_TYPE_I32, {used, 1}), make_tensor(TSR_TYPE_F32, {used, 1})}, attributes);
    node.run(Ranges::of(1), workers);
    Routed out;
    for (int64_t i = 0; i < used; ++i) {
        out.ids.push_back(node.operand(2).integers()[i]);
        out.weights.push_back(node.operand(3).at(i));
    }
    return out;
}

// Logits whose softmax is p.
std::vector<float> logs(std::vector<float> p) {
    for (float& v : p) v = std::log(v);
    return p;
}

TEST(MoeRoute, SoftmaxTakesTheLargestInOrder) {
    const Routed r = route(logs({0.1f, 0.4f, 0.2f, 0.3f}), {}, 3, {attribute("gating", "softmax")});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{1, 3, 2}));
    EXPECT_NEAR(r.weights[0], 0.4, 1e-6);
    EXPECT_NEAR(r.weights[2], 0.2, 1e-6);
}

TEST(MoeRoute, NormalizesAndScales) {
    const Routed r =
        route(logs({0.1f, 0.4f, 0.2f, 0.3f}), {}, 2,
              {attribute("gating", "softmax"), attribute("normalize", int64_t{1}), attribute("scale", 2.5)});
    EXPECT_NEAR(r.weights[0], 2.5 * 0.4 / 0.7, 1e-5);
    EXPECT_NEAR(r.weights[1], 2.5 * 0.3 / 0.7, 1e-5);
}

TEST(MoeRoute, BiasSelectsButDoesNotWeigh) {
    const Routed r = route({0, 0, 2, -2}, {0, 5, 0, 5.5f}, 2, {attribute("gating", "sigmoid")});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{3, 1}));
    EXPECT_NEAR(r.weights[0], 1 / (1 + std::exp(2.0)), 1e-6);
    EXPECT_NEAR(r.weights[1], 0.5, 1e-6);
}

TEST(MoeRoute, TiesGoToTheLowerIndex) {
    const Routed r = route({1, 1, 1, 1}, {}, 2, {attribute("gating", "sigmoid")});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1}));
}

// Softmax groups by their best: the group of 0.36 wins over that of 0.34 + 0.2.
TEST(MoeRoute, SoftmaxGroupsScoreByTheirBest) {
    const Routed r =
        route(logs({0.34f, 0.2f, 0.36f, 0.1f}), {}, 2,
              {attribute("gating", "softmax"), attribute("groups", int64_t{2}), attribute("groups_used", int64_t{1})});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{2, 3}));
}

// Sigmoid groups by the sum of their best two: here the other one wins.
TEST(MoeRoute, SigmoidGroupsScoreByTheirBestTwo) {
    const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
    const Routed r =
        route({logit(0.5), logit(0.4), logit(0.6), logit(0.1)}, {}, 2,
              {attribute("gating", "sigmoid"), attribute("groups", int64_t{2}), attribute("groups_used", int64_t{1})});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1}));
}

TEST(MoeRoute, GroupsAreScoredWithTheBias) {
    const Routed r =
        route({0, 0, 0, 0, 0, 0}, {0, 0, -3, 9, 1, 1}, 2,
              {attribute("gating", "sigmoid"), attribute("groups", int64_t{3}), attribute("groups_used", int64_t{1})});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{3, 2}));
}

TEST(MoeRoute, FewerExpertsWhereTheyAreFarBehind) {
    const Routed r = route(logs({0.5f, 0.3f, 0.1f, 0.06f, 0.04f}), {}, 4,
                           {attribute("gating", "softmax"), attribute("keep_at_least", int64_t{2}),
                            attribute("keep_ratio", 0.15), attribute("normalize", int64_t{1})});
    EXPECT_EQ(r.ids, (std::vector<int32_t>{0, 1, 2, -1}));
    EXPECT_NEAR(r.weights[0], 0.5 / 0.9, 1e-5);
    EXPECT_EQ(r.weights[3], 0.0f);
    const Routed kept =
        route(logs({0.9f, 0.05f, 0.05f}), {}, 3,
              {attribute("gating", "softmax"), attribute("keep_at_least", int64_t{2}), attribute("keep_ratio", 0.5)});
    EXPECT_EQ(kept.ids, (std::vector<int32_t>{0, 1, -1}));
}

// The first one chosen weighs 0.12, another 0.73: the ratio is of the largest, and each row has its own.
TEST(MoeRoute, TheRatioIsOfTheLargestWeightOfTheRow) {
    const std::vector<tsr_attribute> attributes = {
        attribute("gating", "sigmoid"), attribute("keep_at_least", int64_t{1}), attribute("keep_ratio", 0.6)};
    const Routed r = route({0, 1, -2, -0.5f}, {0, 0, 5, 0}, 4, attributes);
    EXPECT_EQ(r.ids, (std::vector<int32_t>{2, 1, 0, -1}));
    EXPECT_NEAR(r.weights[0], 1 / (1 + std::exp(2.0)), 1e-6);
    EXPECT_EQ(r.weights[3], 0.0f);
    // Equals of the best stay with a ratio of 1, and more than are chosen may be wanted at least.
    EXPECT_EQ(
        route({1, 1, 1, 0}, {}, 4,
              {attribute("gating", "sigmoid"), attribute("keep_at_least", int64_t{1}), attribute("keep_ratio", 1.0)})
            .ids,
        (std::vector<int32_t>{0, 1, 2, -1}));
    EXPECT_EQ(
        route({2, 1, 0}, {}, 2,
              {attribute("gating", "sigmoid"), attribute("keep_at_least", int64_t{9}), attribute("keep_ratio", 1.0)})
            .ids,
        (std::vector<int32_t>{0, 1}));
}

TEST(MoeRoute, BatchesOfAnySizeLoseTheSameExperts) {
    std::mt19937 rng(2);
    const int64_t experts = 32, used = 6, least = 2;
    for (const int64_t rows : {1, 2, 3, 5, 8, 17, 31, 64, 65}) {
        Tensor logits = random_floats(rng, {experts, rows}, TSR_RANGE_ROWS, 2);
        TestNode node("moe_route", {logits, Tensor{}},
                      {make_tensor(TSR_TYPE_I32, {used, rows}, TSR_RANGE_ROWS),
                       make_tensor(TSR_TYPE_F32, {used, rows}, TSR_RANGE_ROWS)},
                      {attribute("gating", "softmax"), attribute("used", used), attribute("normalize", int64_t{1}),
                       attribute("keep_at_least", least), attribute("keep_ratio", 0.5)});
        node.run(Ranges::of(rows), 3);
        for (int64_t r = 0; r < rows; ++r) {
            std::vector<float> row(logits.floats() + r * experts, logits.floats() + (r + 1) * experts);
            const Routed alone = route(row, {}, used,
                                       {attribute("gating", "softmax"), attribute("normalize", int64_t{1}),
                                        attribute("keep_at_least", least), attribute("keep_ratio", 0.5)});
            double sum = 0;
            for (int64_t i = 0; i < used; ++i) {
                EXPECT_EQ(node.operand(2).integers()[r * used + i], alone.ids[i]);
                EXPECT_EQ(node.operand(3).at(i, r), alone.weights[i]);
                if (i >= least && alone.ids[i] >= 0) {
                    EXPECT_GE(alone.weights[i], 0.5f * alone.weights[0]);
                }
                sum += alone.weights[i];
            }
            EXPECT_NEAR(sum, 1, 1e-5);
        }
    }
}

TEST(MoeRoute, ATinySumIsTakenAsTheLeastNormalF16) {
    const Routed r = route({-40, -40}, {}, 2, {attribute("gating", "sigmoid"), attribute("normalize", int64_t{1})});
    EXPECT_NEAR(r.weights[0] / (std::exp(-40.0) / 6.103515625e-5), 1, 1e-5);
}

TEST(MoeRoute, ManyRowsOverManyWorkers) {
    std::mt19937 rng(1);
    const int64_t experts = 64, used = 6, rows = 33;
    Tensor logits = random_floats(rng, {experts, rows}, TSR_RANGE_ROWS, 4);
    TestNode node("moe_route", {logits},
                  {make_tensor(TSR_TYPE_I32, {used, rows}, TSR_RANGE_ROWS),
                   make_tensor(TSR_TYPE_F32, {used, rows}, TSR_RANGE_ROWS)},
                  {attribute("gating", "softmax"), attribute("used", used)});
    node.run(Ranges::of(rows), 5);
    for (int64_t r = 0; r < rows; ++r) {
        std::vector<int32_t> order(experts);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(),
                         [&](int32_t a, int32_t b) { return logits.at(a, r) > logits.at(b, r); });
        order.resize(static_cast<size_t>(used));
        const int32_t* got = node.operand(1).integers() + r * used;
        EXPECT_EQ(order, (std::vector<int32_t>(got, got + used)));
    }
}

}  // namespace
}  // namespace tessera::test
