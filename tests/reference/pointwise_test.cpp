// get_rows, rms_norm, add, mul, silu_mul, weighted_sum, rope, scale_by_position, sigmoid_mul and hadamard on cases
// worked out by hand or by independent loops.
#include "node_builder.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <complex>
#include <numbers>

namespace tessera::test {
namespace {

using sdk::attribute;

TEST(GetRows, DecodesTheRowsThatIdsName) {
    std::mt19937 rng(1);
    Tensor table = random_weight(rng, TSR_TYPE_Q6_K, {512, 9});
    const Tensor plain = decoded(table);
    TestNode node("get_rows", {table, integers({4}, {8, 0, 3, 100}, TSR_RANGE_ROWS)},
                  {make_tensor(TSR_TYPE_F32, {512, 4}, TSR_RANGE_ROWS)});
    node.run(Ranges::of(3), 2);
    for (int64_t i = 0; i < 512; ++i) {
        EXPECT_EQ(node.operand(2).at(i, 0), plain.at(i, 8));
        EXPECT_EQ(node.operand(2).at(i, 1), plain.at(i, 0));
        EXPECT_EQ(node.operand(2).at(i, 2), plain.at(i, 3));
        EXPECT_TRUE(std::isnan(node.operand(2).at(i, 3)));
    }
    EXPECT_THROW(node.run(Ranges::of(4)), sdk::Failure);
}

TEST(RmsNorm, HandMade) {
    // mean of squares of (3, 4) is 12.5; with epsilon 3.5 the divisor is 4.
    TestNode node("rms_norm", {floats({2, 1}, {3, 4}), floats({2}, {2, -1})}, {make_tensor(TSR_TYPE_F32, {2, 1})},
                  {attribute("epsilon", 3.5)});
    node.run();
    EXPECT_FLOAT_EQ(node.operand(2).at(0, 0), 1.5f);
    EXPECT_FLOAT_EQ(node.operand(2).at(1, 0), -1.0f);
}

TEST(RmsNorm, InPlaceOverHeadsOfAView) {
    std::mt19937 rng(2);
    Tensor x = random_floats(rng, {12, 3, 5}, TSR_RANGE_ROWS);
    const std::vector<unsigned char> before = *x.bytes;
    Tensor w = random_floats(rng, {8});
    Tensor view = x;
    view.desc.dims[0] = 8;
    view.desc.offset = 16;
    TestNode node("rms_norm", {view, w}, {view}, {attribute("epsilon", 1e-6)});
    node.run(Ranges::of(4), 3);
    const float* old = reinterpret_cast<const float*>(before.data());
    for (int64_t r = 0; r < 5; ++r) {
        for (int64_t h = 0; h < 3; ++h) {
            const float* row = old + (r * 3 + h) * 12;
            double squares = 0;
            for (int i = 0; i < 8; ++i) squares += double{row[4 + i]} * row[4 + i];
            for (int i = 0; i < 12; ++i) {
                const bool touched = i >= 4 && r < 4;
                const double wanted = touched ? row[i] / std::sqrt(squares / 8 + 1e-6) * w.at(i - 4) : row[i];
                EXPECT_NEAR(x.at(i, h, r), wanted, 1e-5);
            }
        }
    }
}

TEST(Scale, MultipliesTheRowsThatAreThere) {
    Tensor x = floats({2, 3, 7}, std::vector<float>(42, 3.0f));
    x.desc.range = TSR_RANGE_ROWS;
    TestNode node("scale", {x}, {x}, {attribute("factor", -0.25)});
    node.run(Ranges::of(6), 2);
    for (int64_t r = 0; r < 7; ++r) EXPECT_EQ(x.at(1, 2, r), r < 6 ? -0.75f : 3.0f) << r;
}

TEST(ScaleByPosition, GrowsWithTheLogarithmOfPeriods) {
    const std::vector<int32_t> positions = {0, 99, 100, 199, 200, 1000, 7};
    const std::vector<double> periods = {1, 1, 2, 2, 3, 11, 1};
    Tensor x = floats({2, 3, 7}, std::vector<float>(42, 3.0f));
    x.desc.range = TSR_RANGE_ROWS;
    TestNode node("scale_by_position", {x, integers({7}, positions, TSR_RANGE_ROWS)}, {x},
                  {attribute("scale", 0.25), attribute("length", int64_t{100})});
    node.run(Ranges::of(6), 2);
    for (int64_t r = 0; r < 7; ++r) {
        const double wanted = r < 6 ? 3 * (1 + 0.25 * std::log(periods[static_cast<size_t>(r)])) : 3;
        for (int64_t h = 0; h < 3; ++h) EXPECT_FLOAT_EQ(x.at(1, h, r), static_cast<float>(wanted)) << r;
    }
    Tensor late = floats({2, 1}, {1, 1});
    TestNode offset("scale_by_position", {late, integers({1}, {99})}, {late},
                    {attribute("scale", 1.0), attribute("length", int64_t{100}), attribute("offset", int64_t{1})});
    offset.run();
    EXPECT_FLOAT_EQ(late.at(0, 0), static_cast<float>(1 + std::log(2.0)));
}

TEST(SigmoidMul, MultipliesARowWithTheSigmoidOfItsGate) {
    Tensor x = floats({2, 3, 2}, std::vector<float>(12, 3.0f));
    x.desc.range = TSR_RANGE_ROWS;
    Tensor gate = floats({3, 2}, {0, 1, -200, 200, -1, 5});
    gate.desc.range = TSR_RANGE_ROWS;
    TestNode node("sigmoid_mul", {x, gate}, {x}, {});
    node.run(Ranges::of(1), 2);
    EXPECT_EQ(x.at(0, 0, 0), 1.5f);
    EXPECT_FLOAT_EQ(x.at(1, 1, 0), static_cast<float>(3 / (1 + std::exp(-1.0))));
    EXPECT_EQ(x.at(1, 2, 0), 0.0f);
    EXPECT_EQ(x.at(0, 0, 1), 3.0f);
}

TEST(Hadamard, IsTheMatrixOfBlocksAndUndoesItself) {
    std::mt19937 rng(3);
    for (const int64_t n : {1, 7, 32, 48, 64, 192}) {
        const int64_t block = n == 48 ? 16 : n == 192 ? 64 : n == 7 ? 1 : n;
        const Tensor x = random_floats(rng, {n, 2, 5}, TSR_RANGE_ROWS);
        TestNode node("hadamard", {x}, {make_tensor(TSR_TYPE_F32, {n, 2, 5}, TSR_RANGE_ROWS)});
        node.run(Ranges::of(4), 3);
        Tensor got = node.operand(1);
        for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t j = i / block * block; j < i / block * block + block; ++j)
                sum += (std::popcount(static_cast<uint64_t>(i % block & j % block)) % 2 ? -1.0 : 1.0) * x.at(j, 1, 3);
            EXPECT_NEAR(got.at(i, 1, 3), sum / std::sqrt(static_cast<double>(block)), 1e-5);
            EXPECT_TRUE(std::isnan(got.at(i, 0, 4)));
        }
        TestNode again("hadamard", {got}, {got});
        again.run(Ranges::of(4));
        for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(got.at(i, 1, 2), x.at(i, 1, 2), 1e-5);
    }
}

TEST(AddMul, ElementwiseAndAcrossRows) {
    Tensor a = floats({2, 2}, {1, 2, 3, 4}, TSR_RANGE_ROWS);
    Tensor b = floats({2, 2}, {10, 20, 30, 40}, TSR_RANGE_ROWS);
    TestNode add("add", {a, b}, {a});
    add.run(Ranges::of(2), 2);
    EXPECT_FLOAT_EQ(a.at(1, 1), 44);
    EXPECT_FLOAT_EQ(a.at(0, 0), 11);
    TestNode mul("mul", {a, floats({2}, {2, 3})}, {make_tensor(TSR_TYPE_F32, {2, 2}, TSR_RANGE_ROWS)});
    mul.run(Ranges::of(1));
    EXPECT_FLOAT_EQ(mul.operand(2).at(0, 0), 22);
    EXPECT_FLOAT_EQ(mul.operand(2).at(1, 0), 66);
    EXPECT_TRUE(std::isnan(mul.operand(2).at(0, 1)));
}

TEST(AddMul, ASingleRow) {
    TestNode add("add", {floats({3}, {1, 2, 3}), floats({3}, {1, 1, 1})}, {make_tensor(TSR_TYPE_F32, {3})});
    add.run(Ranges::of(0), 2);
    for (int i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(add.operand(2).at(i), static_cast<float>(i + 2));
}

TEST(SiluMul, KnownValues) {
    TestNode node("silu_mul", {floats({4, 1}, {0, 1, -1, -200}), floats({4, 1}, {5, 2, 2, 1})},
                  {make_tensor(TSR_TYPE_F32, {4, 1})});
    node.run();
    EXPECT_FLOAT_EQ(node.operand(2).at(0), 0);
    EXPECT_NEAR(node.operand(2).at(1), 2 * 0.7310585786, 1e-6);
    EXPECT_NEAR(node.operand(2).at(2), -2 * 0.2689414214, 1e-6);
    EXPECT_NEAR(node.operand(2).at(3), 0, 1e-30);
}

TEST(WeightedSum, HandMade) {
    TestNode node("weighted_sum", {floats({2, 2, 1}, {1, 2, 10, 20}), floats({2, 1}, {0.5f, 2})},
                  {make_tensor(TSR_TYPE_F32, {2, 1})});
    node.run();
    EXPECT_FLOAT_EQ(node.operand(2).at(0), 20.5f);
    EXPECT_FLOAT_EQ(node.operand(2).at(1), 41);
}

// Rotation of pairs as complex numbers.
void rope_case(const char* mode, bool with_factors) {
    std::mt19937 rng(3);
    const int64_t d = 16, heads = 3, rows = 5;
    Tensor x = random_floats(rng, {d, heads, rows});
    Tensor out = make_tensor(TSR_TYPE_F32, {d, heads, rows});
    const std::vector<int32_t> positions = {0, 1, 7, 4095, 100000};
    Tensor factors = with_factors ? random_floats(rng, {d / 2}) : Tensor{};
    if (with_factors) {
        for (int64_t i = 0; i < d / 2; ++i) factors.at(i) = 1.5f + factors.at(i);
    }
    TestNode node("rope", {x, integers({rows}, positions), factors}, {out},
                  {attribute("mode", mode), attribute("base", 10000.0), attribute("freq_scale", 0.25)});
    node.run(Ranges::of(0), 2);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t h = 0; h < heads; ++h) {
            for (int64_t i = 0; i < d / 2; ++i) {
                const bool neox = mode[1] == 'e';
                const int64_t a = neox ? i : 2 * i, b = neox ? i + d / 2 : 2 * i + 1;
                const double angle = positions[static_cast<size_t>(r)] * 0.25 *
                                     std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d)) /
                                     (with_factors ? factors.at(i) : 1.0f);
                const std::complex<double> wanted =
                    std::complex<double>(x.at(a, h, r), x.at(b, h, r)) * std::polar(1.0, angle);
                EXPECT_NEAR(out.at(a, h, r), wanted.real(), 1e-6);
                EXPECT_NEAR(out.at(b, h, r), wanted.imag(), 1e-6);
            }
        }
    }
}

TEST(Rope, Norm) {
    rope_case("norm", false);
}
TEST(Rope, Neox) {
    rope_case("neox", false);
}
TEST(Rope, Factors) {
    rope_case("neox", true);
}

// DeepSeek-V3's own values: high frequencies stay, low ones are divided by 40, and between the two of them a ramp. The
// boundaries (10 and 23 of 32 pairs) are those that the published configuration gives.
TEST(Rope, YarnKeepsHighAndStretchesLowFrequencies) {
    const int64_t d = 64;
    Tensor x = make_tensor(TSR_TYPE_F32, {d, 1, 1});
    for (int64_t i = 0; i < d; ++i) x.at(i) = i % 2 == 0 ? 1.0f : 0.0f;
    Tensor out = make_tensor(TSR_TYPE_F32, {d, 1, 1});
    const double attn = 1.25;
    TestNode node("rope", {x, integers({1}, {3})}, {out},
                  {attribute("mode", "norm"), attribute("base", 10000.0), attribute("freq_scale", 1.0 / 40),
                   attribute("ext_factor", 1.0), attribute("attn_factor", attn), attribute("beta_fast", 32.0),
                   attribute("beta_slow", 1.0), attribute("original_context", int64_t{4096})});
    node.run();
    for (int64_t i = 0; i < d / 2; ++i) {
        const double plain = std::pow(10000.0, -2.0 * static_cast<double>(i) / d);
        double frequency = plain;
        if (i >= 23) frequency = plain / 40;
        if (i > 10 && i < 23) {
            const double ramp = (static_cast<double>(i) - 10) / 13;
            frequency = plain / 40 * ramp + plain * (1 - ramp);
        }
        EXPECT_NEAR(out.at(2 * i), attn * std::cos(3 * frequency), 1e-6) << i;
        EXPECT_NEAR(out.at(2 * i + 1), attn * std::sin(3 * frequency), 1e-6) << i;
    }
}

TEST(Rope, InPlaceInTheLastPartOfEachHead) {
    std::mt19937 rng(4);
    Tensor x = random_floats(rng, {12, 2, 3});
    const std::vector<unsigned char> before = *x.bytes;
    Tensor part = x;
    part.desc.dims[0] = 4;
    part.desc.offset = 8 * 4;
    TestNode node("rope", {part, integers({3}, {1, 2, 3})}, {part},
                  {attribute("mode", "norm"), attribute("base", 100.0)});
    node.run();
    const float* old = reinterpret_cast<const float*>(before.data());
    for (int64_t r = 0; r < 3; ++r) {
        for (int64_t h = 0; h < 2; ++h) {
            const float* row = old + (r * 2 + h) * 12;
            for (int i = 0; i < 8; ++i) EXPECT_EQ(x.at(i, h, r), row[i]);
            const std::complex<double> wanted =
                std::complex<double>(row[8], row[9]) * std::polar(1.0, static_cast<double>(r + 1));
            EXPECT_NEAR(x.at(8, h, r), wanted.real(), 1e-6);
            EXPECT_NEAR(x.at(9, h, r), wanted.imag(), 1e-6);
        }
    }
}

}  // namespace
}  // namespace tessera::test
