// Products have the same bits on every vector unit: integer sums are exact, and additions of floats keep their order.
#include "matmul_nodes.hpp"

#include <gtest/gtest.h>

namespace tessera::tests {
namespace {

struct Shape {
    int64_t k, n, rows;
};

// A kernel, and the flags that it is planned with; nullptr: those that the tests are run for.
struct Level {
    const tsr_kernel& kernel;
    const char* const* flags;
};

std::vector<float> outputs(const Level& level, tsr_type type, Shape s, bool packed, bool columns) {
    std::mt19937 random(41);
    NodeCase node(TSR_OP_MATMUL);
    node.cpu_flags = level.flags;
    Operand& x = node.add(true, TSR_TYPE_F32, {s.k, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    fill_normal(x.floats(), static_cast<size_t>(s.k * s.rows), random);
    make_weight(node.add(true, type, {columns ? s.n : s.k, columns ? s.k : s.n}, TSR_ROLE_WEIGHT), s.k, random, packed);
    Operand& out = node.add(false, TSR_TYPE_F32, {s.n, s.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    if (columns) node.attribute("transpose_weight", int64_t{1});
    node.run_kernel(level.kernel, 2, Ranges(0, static_cast<int32_t>(s.rows)));
    return {out.floats(), out.floats() + s.n * s.rows};
}

class SameBits : public testing::TestWithParam<tsr_type> {};

TEST_P(SameBits, AsOnAvx2) {
    static constexpr const char* kAvx2Alone[] = {"avx2", "fma", "f16c", nullptr};
    const Level tested{kernel_of(TSR_OP_MATMUL), nullptr}, avx2{kernel_of_avx2(TSR_OP_MATMUL), kAvx2Alone};
    // Every number of rows in a tile, of groups in a panel, and more elements than a panel has.
    // And of rows in a tile register, and odd numbers of blocks.
    for (const Shape s : {Shape{256, 24, 1},
                          {256, 40, 5},
                          {1280, 24, 6},
                          {768, 72, 7},
                          {256, 16, 12},
                          {1024, 8, 13},
                          {96, 24, 11},
                          {1280, 8, 54},
                          {544, 24, 55},
                          {256, 40, 60},
                          {512, 16, 61},
                          {512, 16, 134}}) {
        if (s.k % cpu::format_size(GetParam()).elements != 0) continue;
        SCOPED_TRACE(testing::Message() << s.k << " x " << s.n << ", " << s.rows << " rows");
        for (const bool packed : {true, false}) {
            EXPECT_EQ(outputs(tested, GetParam(), s, packed, false), outputs(avx2, GetParam(), s, packed, false));
        }
    }
    const Shape transposed{37, 512, 8};
    EXPECT_EQ(outputs(tested, GetParam(), transposed, false, true), outputs(avx2, GetParam(), transposed, false, true));
}

std::string name_of(const testing::TestParamInfo<tsr_type>& type) {
    return std::string(layout_of(type.param).name);
}
INSTANTIATE_TEST_SUITE_P(Types, SameBits, testing::ValuesIn(weight_types()), name_of);

}  // namespace
}  // namespace tessera::tests
