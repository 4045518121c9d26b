// Packed layouts, and codes at their extremes.
#include "matmul_nodes.hpp"

#include <gtest/gtest.h>

namespace tessera::tests {
namespace {

class PackedFormat : public testing::TestWithParam<tsr_type> {};

TEST_P(PackedFormat, UnpacksToTheSameBytesAndTakesNoMore) {
    const tsr_layout& layout = layout_of(GetParam());
    std::mt19937 random(31);
    for (const int64_t elements : {256, 1280}) {
        constexpr int64_t kGroups = 3;
        const size_t bytes = cpu::format_bytes(GetParam(), static_cast<size_t>(elements), 8 * kGroups);
        ASSERT_EQ(bytes, kGroups * layout.group_bytes(&layout, elements));
        std::vector<unsigned char> rows(bytes), back(bytes);
        std::vector<uint64_t> packed(bytes / 8 + 1, ~uint64_t{0});
        for (auto& b : rows) b = static_cast<unsigned char>(random());
        layout.pack(&layout, elements, kGroups, rows.data(), packed.data());
        // Blocks of the rows side by side are the rows themselves where each is a block.
        if (elements > 256) {
            EXPECT_NE(std::memcmp(rows.data(), packed.data(), bytes), 0);
        }
        layout.unpack(&layout, elements, kGroups, packed.data(), back.data());
        EXPECT_EQ(rows, back);
    }
}

// Sums are kept in 16 bits where ranges allow. All codes at one end and all activations of one sign are the worst case.
TEST_P(PackedFormat, DoesNotOverflowAtTheEndsOfItsRange) {
    if (is_plain(GetParam())) return;
    constexpr int64_t kK = 256;
    for (const int byte : {0x00, 0xFF, 0x0F, 0xF0, 0x80, 0x7F}) {
        for (const float sign : {1.0f, -1.0f}) {
            for (const int64_t rows : {1, 5}) {
                NodeCase node(TSR_OP_MATMUL);
                Operand& x = node.add(true, TSR_TYPE_F32, {kK, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
                for (int64_t i = 0; i < kK * rows; ++i) x.floats()[i] = sign;
                Operand& weight = node.add(true, GetParam(), {kK, 8}, TSR_ROLE_WEIGHT);
                const size_t bytes = cpu::format_bytes(GetParam(), kK, 8);
                std::vector<unsigned char> rows_of_weight(bytes, static_cast<unsigned char>(byte));
                for (size_t r = 0; r < 8; ++r) {
                    set_scales(GetParam(), rows_of_weight.data() + r * bytes / 8, kK, [] { return 0.5f; });
                }
                std::vector<float> values(kK);
                cpu::decode_row(GetParam(), rows_of_weight.data(), kK, values.data());
                const tsr_layout& layout = layout_of(GetParam());
                layout.pack(&layout, kK, 1, rows_of_weight.data(), weight.data());
                weight.tensor.layout = layout.name;
                Operand& out = node.add(false, TSR_TYPE_F32, {8, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
                node.run_kernel(kernel_of(TSR_OP_MATMUL), 1, Ranges(0, static_cast<int32_t>(rows)));
                const double wanted = product(values.data(), x.floats(), kK);
                double size = 0;
                for (const float v : values) size += std::fabs(v);
                for (int64_t i = 0; i < 8 * rows; ++i) {
                    EXPECT_NEAR(out.floats()[i], wanted, 1e-5 * size) << "byte " << byte << ", sign " << sign;
                }
            }
        }
    }
}

std::string name_of(const testing::TestParamInfo<tsr_type>& type) {
    return std::string(layout_of(type.param).name);
}
INSTANTIATE_TEST_SUITE_P(Types, PackedFormat, testing::ValuesIn(weight_types()), name_of);

}  // namespace
}  // namespace tessera::tests
