// What is written to caches, in each layout and type.
#include "attention_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tessera::tests {
namespace {

// Rows that cost f16 and bf16 no precision are the same bytes whether a kernel writes them or canonical rows are
// packed, by workers that write rows of the same four tokens.
TEST(CacheWrite, WritesTheLayoutThatAttentionReads) {
    for (const tsr_type type : {TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0}) {
        if (type == TSR_TYPE_Q8_0 && !multiplies_bytes()) continue;
        constexpr int kRows = 5, kElements = 576, kPages = 3;
        NodeCase node(TSR_OP_CACHE_WRITE);
        Operand& x = node.add(true, TSR_TYPE_F32, {kElements, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        Operand& positions = node.add(true, TSR_TYPE_I32, {kRows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& sequences = node.add(true, TSR_TYPE_I32, {kRows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& table = node.add(true, TSR_TYPE_I32, {2, 1}, TSR_ROLE_INPUT);
        node.add(false, type, {kElements, 64, kPages}, TSR_ROLE_CACHE);
        Operand canonical = node.output();
        canonical.storage.assign(canonical.storage.size(), 0);
        table.integers()[0] = 2;
        table.integers()[1] = 0;
        std::mt19937 random(1);
        for (int r = 0; r < kRows; ++r) {
            positions.integers()[r] = 62 + r;  // over the end of a page
            sequences.integers()[r] = 0;
            float* row = x.floats() + r * kElements;
            for (int e = 0; e < kElements; ++e) row[e] = float(int(random() % 201) - 100) / 64;
            if (r == 2) std::fill_n(row, kElements, 0.0f);
            if (type != TSR_TYPE_Q8_0) {  // whose codes beside such a scale mean nothing
                if (r == 1) row[3] = std::numeric_limits<float>::infinity();
                if (r == 3) std::fill_n(row, kElements, 1e-40f);
            }
            const int page = table.integers()[(62 + r) / 64];
            cpu::encode_row(
                type, row, kElements,
                canonical.data() + page * canonical.tensor.strides[2] + (62 + r) % 64 * canonical.tensor.strides[1]);
        }
        const tsr_kernel& kernel = kernel_of(TSR_OP_CACHE_WRITE);
        const tsr_device_info device = device_of(2);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        sdk::check(kernel.plan(&kernel, &node.node(), &device, &plan));
        ASSERT_TRUE(plan.supported) << plan.reason;
        Operand& written = node.output();
        written.storage.assign(written.storage.size(), 0);
        ASSERT_TRUE(pack_cache(written, plan.layouts[4]));
        ASSERT_TRUE(pack_cache(canonical, plan.layouts[4]));
        const tsr_range ranges[TSR_RANGE_COUNT] = {{0, kRows}, {0, 0}, {0, 0}, {0, 0}};
        node.run_kernel(kernel, kRows, ranges);
        const size_t bytes = written.storage.size() - 128;
        EXPECT_EQ(std::memcmp(written.data(), canonical.data(), bytes), 0) << cpu::format_name(type);
    }
}

// What is not finite is so in the cache, too.
TEST(CacheWrite, KeepsNansAndInfinities) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL}) {
        constexpr int kElements = 64;
        for (int i = 0; i < 96; ++i) {
            constexpr float kInfinity = std::numeric_limits<float>::infinity();
            const int at = i % 32;
            NodeCase node(TSR_OP_CACHE_WRITE);
            float* x = node.add(true, TSR_TYPE_F32, {kElements, 1}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS).floats();
            node.add(true, TSR_TYPE_I32, {1}, TSR_ROLE_INPUT, TSR_RANGE_ROWS).integers()[0] = 0;
            node.add(true, TSR_TYPE_I32, {1}, TSR_ROLE_INPUT, TSR_RANGE_ROWS).integers()[0] = 0;
            node.add(true, TSR_TYPE_I32, {1, 1}, TSR_ROLE_INPUT).integers()[0] = 0;
            node.add(false, type, {kElements, 64, 1}, TSR_ROLE_CACHE);
            std::fill_n(x, kElements, 0.5f);
            x[at] = i < 32 ? std::numeric_limits<float>::quiet_NaN() : i < 64 ? kInfinity : -kInfinity;
            const tsr_range ranges[TSR_RANGE_COUNT] = {{0, 1}, {0, 0}, {0, 0}, {0, 0}};
            node.run_kernel(kernel_of(TSR_OP_CACHE_WRITE), 1, ranges);
            float row[kElements];
            cpu::decode_row(type, node.output().data(), kElements, row);
            EXPECT_FALSE(std::isfinite(row[at])) << cpu::format_name(type) << ", " << x[at] << " at " << at;
            EXPECT_EQ(std::isfinite(row[kElements - 1]), type != TSR_TYPE_Q8_KV) << cpu::format_name(type);
        }
    }
}

}  // namespace
}  // namespace tessera::tests
