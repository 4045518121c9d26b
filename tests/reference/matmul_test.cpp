// matmul and matmul_id against loops in double over decoded weights.
#include "node_builder.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::test {
namespace {

using sdk::attribute;

class MatmulTypes : public testing::TestWithParam<tsr_type> {};

TEST_P(MatmulTypes, AgreesWithLoops) {
    std::mt19937 rng(1);
    const int64_t block = cpu::format_size(GetParam()).elements;
    for (const auto& [k, n, rows] :
         {std::tuple{block, int64_t{1}, 1}, {block == 1 ? 111 : 3 * block, 5, 3}, {block * 5, 33, 37}}) {
        Tensor x = random_floats(rng, {k, rows});
        Tensor w = random_weight(rng, GetParam(), {k, n});
        TestNode node("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {n, rows})});
        node.run(Ranges::of(rows), 3);
        const Tensor plain = decoded(w);
        std::vector<double> got, wanted;
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t o = 0; o < n; ++o) {
                double sum = 0;
                for (int64_t i = 0; i < k; ++i) sum += double{x.at(i, r)} * plain.at(i, o);
                wanted.push_back(sum);
                got.push_back(node.operand(2).at(o, r));
            }
        }
        EXPECT_LT(relative_error(got, wanted), 1e-6) << k << " " << n << " " << rows;
    }
}

TEST_P(MatmulTypes, TransposedAndBatchedInAView) {
    std::mt19937 rng(2);
    const int64_t block = cpu::format_size(GetParam()).elements;
    const int64_t n = block * 3, k = 21, batch = 3, rows = 19;
    // The weight is a view of a larger one: rows 2 .. 2 + k of k + 5 of each batch.
    Tensor w = random_weight(rng, GetParam(), {n, k + 5, batch});
    w.desc.dims[1] = k;
    w.desc.offset = 2 * w.desc.strides[1];
    // Rows of x are a part of wider rows, those of the output too.
    Tensor x = random_floats(rng, {k + 4, batch, rows});
    x.desc.dims[0] = k;
    x.desc.offset = 4 * 4;
    Tensor out = make_tensor(TSR_TYPE_F32, {n + 3, batch, rows});
    out.desc.dims[0] = n;
    TestNode node("matmul", {x, w}, {out}, {attribute("transpose_weight", int64_t{1})});
    node.run(Ranges::of(rows), 2);
    const Tensor plain = decoded(w);
    std::vector<double> got, wanted;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t b = 0; b < batch; ++b) {
            for (int64_t o = 0; o < n; ++o) {
                double sum = 0;
                for (int64_t i = 0; i < k; ++i) sum += double{x.at(i, b, r)} * plain.at(o, i, b);
                wanted.push_back(sum);
                got.push_back(out.at(o, b, r));
            }
            EXPECT_TRUE(std::isnan(out.at(n, b, r))) << "wrote past the row";
        }
    }
    EXPECT_LT(relative_error(got, wanted), 1e-6);
}

std::string type_label(const testing::TestParamInfo<tsr_type>& info) {
    return cpu::format_name(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, MatmulTypes, testing::ValuesIn(tests::weight_types()), type_label);

TEST(Matmul, BatchesShareARowThroughAStrideOfZero) {
    std::mt19937 rng(3);
    Tensor shared = random_floats(rng, {8, 4});
    Tensor x = shared;
    x.desc.rank = 3;
    x.desc.dims[1] = 5;
    x.desc.dims[2] = 4;
    x.desc.strides[1] = 0;
    x.desc.strides[2] = 32;
    Tensor w = random_floats(rng, {8, 2, 5});
    TestNode node("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {2, 5, 4})});
    node.run();
    for (int64_t r = 0; r < 4; ++r) {
        for (int64_t b = 0; b < 5; ++b) {
            for (int64_t o = 0; o < 2; ++o) {
                double sum = 0;
                for (int64_t i = 0; i < 8; ++i) sum += double{shared.at(i, r)} * w.at(i, o, b);
                EXPECT_NEAR(node.operand(2).at(o, b, r), sum, 1e-6);
            }
        }
    }
}

TEST(Matmul, TouchesTheActualRowsOnly) {
    std::mt19937 rng(4);
    Tensor x = random_floats(rng, {16, 6}, TSR_RANGE_GENERATION_ROWS);
    Tensor w = random_floats(rng, {16, 3});
    TestNode node("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {3, 6}, TSR_RANGE_GENERATION_ROWS)});
    node.run(Ranges::of(5, 2), 2);
    for (int64_t r = 0; r < 6; ++r) EXPECT_EQ(std::isnan(node.operand(2).at(1, r)), r < 2 || r >= 5) << r;
}

TEST(Matmul, DoesNotDependOnTheNumberOfWorkers) {
    std::mt19937 rng(5);
    Tensor x = random_floats(rng, {512, 40});
    Tensor w = random_weight(rng, TSR_TYPE_Q4_K, {512, 100});
    TestNode one("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {100, 40})});
    TestNode many("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {100, 40})});
    one.run(Ranges::of(40), 1);
    many.run(Ranges::of(40), 7);
    EXPECT_EQ(*one.operand(2).bytes, *many.operand(2).bytes);
}

void matmul_id_case(bool own_rows) {
    std::mt19937 rng(6);
    const int64_t k = 64, n = 7, experts = 5, used = 3, rows = 29;
    Tensor x = own_rows ? random_floats(rng, {k, used, rows}) : random_floats(rng, {k, rows});
    Tensor w = random_weight(rng, TSR_TYPE_Q5_1, {k, n, experts});
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < used * rows; ++i) ids.push_back(static_cast<int32_t>(rng() % (experts + 1)) - 1);
    Tensor id = integers({used, rows}, ids);
    TestNode node("matmul_id", {x, w, id}, {make_tensor(TSR_TYPE_F32, {n, used, rows})});
    node.run(Ranges::of(rows), 4);
    const Tensor plain = decoded(w);
    std::vector<double> got, wanted;
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t s = 0; s < used; ++s) {
            const int32_t expert = ids[static_cast<size_t>(r * used + s)];
            for (int64_t o = 0; o < n; ++o) {
                double sum = 0;
                for (int64_t i = 0; i < k && expert >= 0; ++i) {
                    sum += double{own_rows ? x.at(i, s, r) : x.at(i, r)} * plain.at(i, o, expert);
                }
                wanted.push_back(sum);
                got.push_back(node.operand(3).at(o, s, r));
                EXPECT_TRUE(expert >= 0 || got.back() == 0.0);
            }
        }
    }
    EXPECT_LT(relative_error(got, wanted), 1e-6);
}

TEST(MatmulId, OneRowForAllExperts) {
    matmul_id_case(false);
}
TEST(MatmulId, ARowForEachExpert) {
    matmul_id_case(true);
}

TEST(MatmulId, AnExpertThatIsNotThereIsAnError) {
    std::mt19937 rng(7);
    TestNode node("matmul_id", {random_floats(rng, {4, 1}), random_floats(rng, {4, 2, 3}), integers({1, 1}, {3})},
                  {make_tensor(TSR_TYPE_F32, {2, 1, 1})});
    EXPECT_THROW(node.run(), sdk::Failure);
}

}  // namespace
}  // namespace tessera::test
