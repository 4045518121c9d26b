// matmul and matmul_group: shapes, layouts, views, workers.
#include "matmul_nodes.hpp"

#include <gtest/gtest.h>

namespace tessera::tests {
namespace {

// Rounded activations are the whole difference: what is left is the order of additions.
constexpr double kArithmetic = 3e-6;
// The rounding of activations itself; one output alone may catch more of it than a few do.
constexpr double kRounding = 1.4e-2;

struct Shape {
    int64_t k, n, rows;
};

struct Result {
    std::vector<float> out;     // [rows][batch][n]
    std::vector<double> exact;  // of f32 activations
    std::vector<double> rounded;
    double size = 0;  // of the outputs to be expected, squared and summed
};

// x [k, B, R] or [k, R] over rows [begin, R).
Result run_matmul(tsr_type type, Shape s, int64_t batches, bool packed, bool transposed, uint32_t workers,
                  uint32_t seed, bool shared_row = false, int64_t gap = 0) {
    std::mt19937 random(seed);
    NodeCase node(TSR_OP_MATMUL);
    const int32_t begin = s.rows > 2 ? 1 : 0;
    Operand& x = batches == 0
                     ? node.add(true, TSR_TYPE_F32, {s.k, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, gap)
                     : node.add(true, TSR_TYPE_F32, {s.k, batches, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, gap);
    const int64_t heads = std::max<int64_t>(1, batches);
    if (shared_row) {
        x.tensor.strides[2] = x.tensor.strides[1];
        x.tensor.strides[1] = 0;
    }
    const int64_t row_stride = x.tensor.strides[batches == 0 ? 1 : 2];
    const auto x_at = [&](int64_t r, int64_t b) {
        return reinterpret_cast<float*>(x.data() + r * row_stride + (batches == 0 ? 0 : b * x.tensor.strides[1]));
    };
    for (int64_t r = begin; r < s.rows; ++r) {
        for (int64_t b = 0; b < heads; ++b) fill_normal(x_at(r, b), static_cast<size_t>(s.k), random);
    }
    const int64_t rows_of_weight = transposed ? s.k : s.n, length = transposed ? s.n : s.k;
    Operand& weight = batches == 0 ? node.add(true, type, {length, rows_of_weight}, TSR_ROLE_WEIGHT)
                                   : node.add(true, type, {length, rows_of_weight, batches}, TSR_ROLE_WEIGHT);
    const std::vector<float> w = make_weight(weight, s.k, random, packed);
    Operand& out =
        batches == 0 ? node.add(false, TSR_TYPE_F32, {s.n, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, gap)
                     : node.add(false, TSR_TYPE_F32, {s.n, batches, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, gap);
    if (transposed) node.attribute("transpose_weight", int64_t{1});
    node.run_kernel(kernel_of(TSR_OP_MATMUL), workers, Ranges(begin, static_cast<int32_t>(s.rows)));
    Result result;
    const bool integer = !is_plain(type) && !transposed;
    for (int64_t r = 0; r < s.rows; ++r) {
        for (int64_t b = 0; b < heads; ++b) {
            const auto* y = reinterpret_cast<float*>(out.data() + r * out.tensor.strides[batches == 0 ? 1 : 2] +
                                                     (batches == 0 ? 0 : b * out.tensor.strides[1]));
            if (r < begin) {
                for (int64_t i = 0; i < s.n; ++i)
                    EXPECT_TRUE(std::isnan(y[i])) << "a row outside of the range was written";
                continue;
            }
            const std::vector<float> near = integer ? rounded(x_at(r, b), static_cast<size_t>(s.k))
                                                    : std::vector<float>(x_at(r, b), x_at(r, b) + s.k);
            std::vector<float> column(static_cast<size_t>(s.k));
            for (int64_t i = 0; i < s.n; ++i) {
                const float* row = w.data() + (b * rows_of_weight + i) * length;
                if (transposed) {
                    for (int64_t j = 0; j < s.k; ++j) column[j] = w[(b * s.k + j) * s.n + i];
                    row = column.data();
                }
                result.size += product(row, row, s.k) * product(x_at(r, b), x_at(r, b), s.k) / static_cast<double>(s.k);
                result.out.push_back(y[i]);
                result.exact.push_back(product(row, x_at(r, b), s.k));
                result.rounded.push_back(product(row, near.data(), s.k));
            }
        }
    }
    return result;
}

void expect_close(const Result& result) {
    const std::vector<double> out(result.out.begin(), result.out.end());
    EXPECT_LT(error_of(out, result.rounded, result.size), kArithmetic);
    EXPECT_LT(error_of(out, result.exact, result.size), kRounding);
}

class MatmulOfType : public testing::TestWithParam<tsr_type> {};

TEST_P(MatmulOfType, IsRightInBothLayoutsForFewAndManyRows) {
    for (const Shape s :
         {Shape{256, 8, 1}, {512, 40, 2}, {1280, 24, 3}, {768, 16, 4}, {2048, 24, 7}, {256, 72, 131}, {1536, 8, 37}}) {
        for (const bool packed : {true, false}) {
            SCOPED_TRACE(testing::Message() << s.k << " x " << s.n << ", " << s.rows << " rows, packed " << packed);
            expect_close(run_matmul(GetParam(), s, 0, packed, false, 2, 11));
        }
    }
}

TEST_P(MatmulOfType, TakesOddNumbersOfOutputsInTheCanonicalLayout) {
    for (const Shape s : {Shape{256, 1, 1}, {512, 13, 3}, {256, 27, 9}}) {
        SCOPED_TRACE(testing::Message() << s.k << " x " << s.n << ", " << s.rows << " rows");
        expect_close(run_matmul(GetParam(), s, 0, false, false, 3, 12));
    }
}

TEST_P(MatmulOfType, ReadsColumns) {
    for (const Shape s : {Shape{128, 512, 1}, {37, 256, 6}, {300, 768, 3}}) {
        SCOPED_TRACE(testing::Message() << s.k << " x " << s.n << ", " << s.rows << " rows");
        expect_close(run_matmul(GetParam(), s, 0, false, true, 2, 13));
        expect_close(run_matmul(GetParam(), s, 3, false, true, 2, 14));
    }
}

TEST_P(MatmulOfType, WorksOverHeadsAndViews) {
    for (const bool packed : {true, false}) {
        expect_close(run_matmul(GetParam(), {256, 16, 5}, 3, packed, false, 2, 15));
        expect_close(run_matmul(GetParam(), {256, 8, 2}, 9, packed, false, 2, 16, false, 64));
        expect_close(run_matmul(GetParam(), {512, 8, 6}, 4, packed, false, 2, 17, true));
    }
}

TEST_P(MatmulOfType, GivesTheSameBitsForAnyNumberOfWorkers) {
    for (const int64_t rows : {1, 21}) {
        for (const bool packed : {true, false}) {
            const Result one = run_matmul(GetParam(), {512, 56, rows}, 0, packed, false, 1, 18);
            for (uint32_t workers = 2; workers <= 8; ++workers) {
                EXPECT_EQ(one.out, run_matmul(GetParam(), {512, 56, rows}, 0, packed, false, workers, 18).out);
            }
        }
    }
    const Result one = run_matmul(GetParam(), {64, 512, 5}, 2, false, true, 1, 19);
    for (uint32_t workers = 2; workers <= 8; ++workers) {
        EXPECT_EQ(one.out, run_matmul(GetParam(), {64, 512, 5}, 2, false, true, workers, 19).out);
    }
}

// The row of a batch of n and the same row alone have the same bits, in either layout: so a sequence's text does not
// depend on its neighbours.
TEST_P(MatmulOfType, GivesARowTheSameBitsInAnyBatch) {
    constexpr int64_t kK = 1280, kN = 24, kRows = 140;
    std::vector<float> whole;
    for (const bool packed : {true, false}) {
        for (const int32_t count : {140, 1, 2, 3, 5}) {
            std::mt19937 random(20);
            NodeCase node(TSR_OP_MATMUL);
            Operand& x = node.add(true, TSR_TYPE_F32, {kK, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            fill_normal(x.floats(), kK * kRows, random);
            Operand& weight = node.add(true, GetParam(), {kK, kN}, TSR_ROLE_WEIGHT);
            make_weight(weight, kK, random, packed);
            Operand& out = node.add(false, TSR_TYPE_F32, {kN, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            const int32_t first = count == kRows ? 0 : 133;
            node.run_kernel(kernel_of(TSR_OP_MATMUL), 2, Ranges(first, first + count));
            if (whole.empty()) whole.assign(out.floats(), out.floats() + kN * kRows);
            for (int32_t i = first * kN; i < (first + count) * kN; ++i) ASSERT_EQ(whole[i], out.floats()[i]) << i;
        }
    }
}

TEST_P(MatmulOfType, HidesNoNotANumber) {
    for (const int64_t rows : {1, 6}) {
        std::mt19937 random(21);
        NodeCase node(TSR_OP_MATMUL);
        Operand& x = node.add(true, TSR_TYPE_F32, {256, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        fill_normal(x.floats(), static_cast<size_t>(256 * rows), random);
        x.floats()[77] = std::numeric_limits<float>::quiet_NaN();
        make_weight(node.add(true, GetParam(), {256, 8}, TSR_ROLE_WEIGHT), 256, random, true);
        Operand& out = node.add(false, TSR_TYPE_F32, {8, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        node.run_kernel(kernel_of(TSR_OP_MATMUL), 2, Ranges(0, static_cast<int32_t>(rows)));
        for (int i = 0; i < 8; ++i) EXPECT_TRUE(std::isnan(out.floats()[i]));
        for (int64_t i = 8; i < 8 * rows; ++i) EXPECT_FALSE(std::isnan(out.floats()[i]));
    }
}

std::string name_of(const testing::TestParamInfo<tsr_type>& info) {
    return std::string(layout_of(info.param).name);
}
INSTANTIATE_TEST_SUITE_P(Types, MatmulOfType, testing::ValuesIn(weight_types()), name_of);

// Past the caches, whole lines or not.
TEST(MatmulOfHeads, WritesResultsThatFillTheCaches) {
    for (const tsr_type type : {TSR_TYPE_Q4_0, TSR_TYPE_F16}) {
        expect_close(run_matmul(type, {32, 264, 131}, 32, true, false, 2, 23));
        expect_close(run_matmul(type, {32, 259, 131}, 32, false, false, 2, 24));
    }
}

TEST(MatmulGroup, SharesRowsAmongWeightsOfDifferentTypes) {
    for (const int64_t rows : {1, 3, 19}) {
        for (uint32_t workers = 1; workers <= 5; ++workers) {
            std::mt19937 random(22);
            NodeCase node(TSR_OP_MATMUL_GROUP);
            Operand& x = node.add(true, TSR_TYPE_F32, {512, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            fill_normal(x.floats(), static_cast<size_t>(512 * rows), random);
            const tsr_type types[] = {TSR_TYPE_Q4_K, TSR_TYPE_Q6_K, TSR_TYPE_Q4_0, TSR_TYPE_F16, TSR_TYPE_Q5_0};
            const int64_t widths[] = {24, 8, 40, 16, 13};
            std::vector<std::vector<float>> weights;
            for (int i = 0; i < 5; ++i) {
                weights.push_back(
                    make_weight(node.add(true, types[i], {512, widths[i]}, TSR_ROLE_WEIGHT), 512, random, i < 4));
            }
            for (int i = 0; i < 5; ++i) {
                node.add(false, TSR_TYPE_F32, {widths[i], rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            }
            const tsr_kernel_plan plan =
                node.run_kernel(kernel_of(TSR_OP_MATMUL_GROUP), workers, Ranges(0, static_cast<int32_t>(rows)));
            EXPECT_STREQ(plan.layouts[1][0], "q4_K_x8");
            for (int i = 0; i < 5; ++i) {
                std::vector<double> got, wanted;
                for (int64_t r = 0; r < rows; ++r) {
                    for (int64_t o = 0; o < widths[i]; ++o) {
                        got.push_back(node.output(static_cast<size_t>(i)).floats()[r * widths[i] + o]);
                        wanted.push_back(product(weights[i].data() + o * 512, x.floats() + r * 512, 512));
                    }
                }
                EXPECT_LT(error_of(got, wanted), 2 * kRounding) << i;
            }
        }
    }
}

TEST(Matmul, DoesNothingForAnEmptyRange) {
    NodeCase node(TSR_OP_MATMUL);
    std::mt19937 random(23);
    node.add(true, TSR_TYPE_F32, {256, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    make_weight(node.add(true, TSR_TYPE_Q4_0, {256, 8}, TSR_ROLE_WEIGHT), 256, random, true);
    Operand& out = node.add(false, TSR_TYPE_F32, {8, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.run_kernel(kernel_of(TSR_OP_MATMUL), 2, Ranges(3, 3));
    for (int i = 0; i < 32; ++i) EXPECT_TRUE(std::isnan(out.floats()[i]));
}

TEST(Matmul, RefusesWhatItCannotDoAndSaysWhy) {
    const auto refusal = [](NodeCase& node) {
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        const tsr_kernel& kernel = kernel_of(TSR_OP_MATMUL);
        sdk::check(kernel.plan(&kernel, &node.node(), nullptr, &plan));
        EXPECT_EQ(plan.supported, 0u);
        return std::string(plan.reason);
    };
    NodeCase lengths(TSR_OP_MATMUL);
    lengths.add(true, TSR_TYPE_F32, {128, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    lengths.add(true, TSR_TYPE_Q4_0, {256, 8}, TSR_ROLE_WEIGHT);
    lengths.add(false, TSR_TYPE_F32, {8, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    EXPECT_NE(refusal(lengths).find("128"), std::string::npos);

    NodeCase layout(TSR_OP_MATMUL);
    layout.add(true, TSR_TYPE_F32, {256, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    layout.add(true, TSR_TYPE_Q4_0, {256, 8}, TSR_ROLE_WEIGHT).tensor.layout = "q4_0_x16";
    layout.add(false, TSR_TYPE_F32, {8, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    EXPECT_NE(refusal(layout).find("q4_0_x16"), std::string::npos);

    NodeCase type(TSR_OP_MATMUL);
    type.add(true, TSR_TYPE_F32, {256, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    type.add(true, TSR_TYPE_I32, {256, 8}, TSR_ROLE_WEIGHT);
    type.add(false, TSR_TYPE_F32, {8, 4}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    EXPECT_NE(refusal(type).find("i32"), std::string::npos);
}

// A plan weighs them against a transposed copy of the weight, which a token reads at the speed of memory.
TEST(MatmulEstimates, ProductsAlongColumnsPayForDecoding) {
    const auto seconds = [](bool transposed) {
        NodeCase node(TSR_OP_MATMUL);
        node.add(true, TSR_TYPE_F32, {512, 16, 1}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        node.add(true, TSR_TYPE_Q4_0, {512, 512, 16}, TSR_ROLE_WEIGHT);
        node.add(false, TSR_TYPE_F32, {512, 16, 1}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        if (transposed) node.attribute("transpose_weight", int64_t{1});
        tsr_device_info device = device_of(2);
        device.clock_hz = 4e9;
        device.memory_bandwidth = 20e9;
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        const tsr_kernel& kernel = kernel_of(TSR_OP_MATMUL);
        sdk::check(kernel.plan(&kernel, &node.node(), &device, &plan));
        EXPECT_TRUE(plan.supported) << plan.reason;
        return plan.seconds_one_row;
    };
    EXPECT_GT(seconds(true), 4 * seconds(false));
}

}  // namespace
}  // namespace tessera::tests
