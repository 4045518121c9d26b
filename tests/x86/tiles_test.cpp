// What kernels do with tile registers: which products use them, when they are configured and released, and what happens
// where the system refuses them. For the emulated plugin.
#include "kernels/x86/matmul/gemm.hpp"
#include "matmul_nodes.hpp"
#include "tests/x86/emulated/tessera/cpu/isa/emulated_tiles.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

namespace tessera::tests {
namespace {

// Of the plugin, which is mapped.
emulated::TileSystem& system_of_plugin() {
    kernel_of(TSR_OP_MATMUL);
    void* library = dlopen(TSR_TEST_PLUGIN_DIR "/tessera_cpu_avx512_emulated.so", RTLD_NOW | RTLD_NOLOAD);
    if (!library) throw std::runtime_error("the emulated plugin is not mapped");
    const auto get = reinterpret_cast<void* (*)()>(dlsym(library, "tessera_emulated_tiles"));
    dlclose(library);  // which leaves it mapped
    return *static_cast<emulated::TileSystem*>(get());
}

struct Used {
    uint64_t configurations, products;
};
// By what `run` does.
template <class Run>
Used used_by(Run&& run) {
    emulated::TileSystem& system = system_of_plugin();
    const Used before{system.configurations, system.products};
    run();
    EXPECT_EQ(system.in_use, 0) << "a worker keeps its registers";
    return {system.configurations - before.configurations, system.products - before.products};
}

std::vector<float> matmul(const tsr_kernel& kernel, tsr_type type, int64_t k, int64_t n, int64_t rows, uint32_t workers,
                          bool columns = false) {
    std::mt19937 random(5);
    NodeCase node(TSR_OP_MATMUL);
    Operand& x = node.add(true, TSR_TYPE_F32, {columns ? n : k, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    fill_normal(x.floats(), static_cast<size_t>((columns ? n : k) * rows), random);
    make_weight(node.add(true, type, {k, n}, TSR_ROLE_WEIGHT), k, random, !columns);
    Operand& out = node.add(false, TSR_TYPE_F32, {columns ? k : n, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    if (columns) node.attribute("transpose_weight", int64_t{1});
    node.run_kernel(kernel, workers, Ranges(0, static_cast<int32_t>(rows)));
    return {out.floats(), out.floats() + (columns ? k : n) * rows};
}

// Formats with two scales for 32 elements are faster without (kernels/x86/rates.cpp).
TEST(Tiles, AreUsedByIntegerFormatsWithOneScaleForManyRows) {
    // Those with two scales for 32 elements, and two whose sums of 32 would not fit 16 bits.
    std::set<tsr_type> without = {TSR_TYPE_Q6_0, TSR_TYPE_IQ2_KS};
    formats::each_block_format([&]<class Block>() {
        if (Block::kScaleElements == 16) without.insert(Block::kType);
    });
    const tsr_kernel& kernel = kernel_of(TSR_OP_MATMUL);
    constexpr uint64_t kRows = x86::kVectorRows + 1;
    for (const tsr_type type : weight_types()) {
        SCOPED_TRACE(layout_of(type).name);
        // A block of 32 elements is one product for 16 rows and a pair of groups.
        const Used many = used_by([&] { matmul(kernel, type, 256, 24, kRows, 1); });
        if (is_plain(type) || without.contains(type)) {
            EXPECT_EQ(many.products, 0u);
            EXPECT_EQ(many.configurations, 0u);
        } else {
            EXPECT_EQ(many.products, (kRows + 15) / 16 * 2 * 8);
            EXPECT_EQ(many.configurations, 1u);
        }
        const Used fewer = used_by([&] { matmul(kernel, type, 256, 24, kRows - 1, 1); });
        EXPECT_EQ(fewer.products, 0u);
        EXPECT_EQ(fewer.configurations, 0u);
    }
    const Used columns = used_by([&] { matmul(kernel, TSR_TYPE_Q4_0, 256, 24, kRows, 1, true); });
    EXPECT_EQ(columns.products, 0u);
    EXPECT_EQ(columns.configurations, 0u);
}

// However many pieces and experts it multiplies.
TEST(Tiles, AreConfiguredOnceAWorkerInARun) {
    constexpr int64_t kK = 256, kRows = 80, kExperts = 3, kUsed = 2;
    for (const uint32_t workers : {1, 2, 3}) {
        SCOPED_TRACE(workers);
        const Used one = used_by([&] { matmul(kernel_of(TSR_OP_MATMUL), TSR_TYPE_Q8_0, kK, 1024, kRows, workers); });
        EXPECT_EQ(one.configurations, workers);
        EXPECT_GT(one.products, 0u);
        for (const char* op : {TSR_OP_MATMUL_GROUP, TSR_OP_GATED_FFN, TSR_OP_MOE_FFN, TSR_OP_MATMUL_ID}) {
            SCOPED_TRACE(op);
            const std::string name = op;
            std::mt19937 random(6);
            NodeCase node(op);
            Operand& x = node.add(true, TSR_TYPE_F32, {kK, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            fill_normal(x.floats(), kK * kRows, random);
            const auto add_ids = [&] {
                Operand& ids = node.add(true, TSR_TYPE_I32, {kUsed, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
                for (int64_t i = 0; i < kUsed * kRows; ++i) ids.integers()[i] = static_cast<int32_t>(i % kExperts);
            };
            const auto add_weight = [&](tsr_type type, bool stacked) {
                Operand& weight = stacked ? node.add(true, type, {kK, kK, kExperts}, TSR_ROLE_WEIGHT)
                                          : node.add(true, type, {kK, kK}, TSR_ROLE_WEIGHT);
                make_weight(weight, kK, random, true);
            };
            int outputs = 1;
            if (name == TSR_OP_MATMUL_ID) {
                add_weight(TSR_TYPE_Q4_K, true);
                add_ids();
            } else if (name == TSR_OP_MATMUL_GROUP) {
                for (const tsr_type type : {TSR_TYPE_Q4_K, TSR_TYPE_Q6_K}) add_weight(type, false);
                outputs = 2;
            } else {
                const bool stacked = name == TSR_OP_MOE_FFN;
                if (stacked) {
                    add_ids();
                    Operand& factors =
                        node.add(true, TSR_TYPE_F32, {kUsed, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
                    for (int64_t i = 0; i < kUsed * kRows; ++i) factors.floats()[i] = 0.5f;
                }
                for (const tsr_type type : {TSR_TYPE_Q4_0, TSR_TYPE_Q4_0, TSR_TYPE_Q8_0}) add_weight(type, stacked);
            }
            for (int i = 0; i < outputs; ++i) {
                if (name == TSR_OP_MATMUL_ID)
                    node.add(false, TSR_TYPE_F32, {kK, kUsed, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
                else
                    node.add(false, TSR_TYPE_F32, {kK, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
            }
            const Used used = used_by([&] { node.run_kernel(kernel_of(op), workers, Ranges(0, kRows)); });
            EXPECT_EQ(used.configurations, workers);
            EXPECT_GT(used.products, 0u);
        }
    }
}

TEST(Tiles, AreNamedInPlans) {
    NodeCase node(TSR_OP_MATMUL);
    node.add(true, TSR_TYPE_F32, {256, 64}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.add(true, TSR_TYPE_Q4_0, {256, 64}, TSR_ROLE_WEIGHT);
    node.add(false, TSR_TYPE_F32, {64, 64}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    const auto plan_of = [&](std::vector<const char*> flags) {
        flags.push_back(nullptr);
        tsr_device_info device = device_of(1);
        device.cpu_flags = flags.data();
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        const tsr_kernel& kernel = kernel_of(TSR_OP_MATMUL);
        sdk::check(kernel.plan(&kernel, &node.node(), &device, &plan));
        return plan;
    };
    const tsr_kernel_plan amx = plan_of({"avx512_vnni", "amx_int8"}), vnni = plan_of({"avx512_vnni"});
    EXPECT_STREQ(amx.reason, "q4_0, int8 activations, AVX-512 with VNNI and AMX");
    EXPECT_STREQ(vnni.reason, "q4_0, int8 activations, AVX-512 with VNNI");
    EXPECT_STREQ(plan_of({"amx_int8"}).reason, "q4_0, int8 activations, AVX-512");
    // By estimate many rows are faster; one row, which takes no tiles, is as fast but for the processors' own rates.
    EXPECT_LT(amx.seconds_all_rows, vnni.seconds_all_rows);
    EXPECT_NEAR(amx.seconds_one_row, vnni.seconds_one_row, 0.05 * vnni.seconds_one_row);
}

// Run by themselves: a process asks the system once.
TEST(TilesRefused, ProductsAreThoseOfVectors) {
    system_of_plugin().refuses = true;
    for (const tsr_type type : {TSR_TYPE_Q4_0, TSR_TYPE_Q4_K, TSR_TYPE_Q8_0, TSR_TYPE_Q6_K}) {
        std::vector<float> out;
        const Used used = used_by([&] { out = matmul(kernel_of(TSR_OP_MATMUL), type, 512, 40, 70, 2); });
        EXPECT_EQ(used.configurations, 0u);
        EXPECT_EQ(used.products, 0u);
        EXPECT_EQ(out, matmul(kernel_of_avx2(TSR_OP_MATMUL), type, 512, 40, 70, 2));
    }
}
TEST(TilesWithoutTheFlag, AreNotUsed) {
    const Used used = used_by([] { matmul(kernel_of(TSR_OP_MATMUL), TSR_TYPE_Q4_0, 256, 24, 70, 2); });
    EXPECT_EQ(used.configurations, 0u);
    EXPECT_EQ(used.products, 0u);
    EXPECT_FALSE(system_of_plugin().permitted) << "permission was asked for";
}

// ---- TilesInUse, over registers that only count. ----

int g_configured = 0, g_released = 0;
constexpr x86::TileUnit kCounting = {[]() noexcept { return true; },
                                     []() noexcept { return g_configured++ == g_released; },
                                     []() noexcept { ++g_released, g_configured = g_released; },
                                     {}};

TEST(TilesInUse, AreReleasedByTheOutermostAndOnExceptions) {
    constexpr int64_t kRows = x86::kVectorRows + 1;
    x86::PanelTable panels{};
    EXPECT_EQ(x86::TilesInUse(panels, 100).unit(), nullptr);
    panels.tiles = &kCounting;
    EXPECT_EQ(x86::TilesInUse(panels, x86::kVectorRows).unit(), nullptr);
    EXPECT_EQ(g_configured, 0);
    {
        const x86::TilesInUse outer(panels, kRows);
        EXPECT_EQ(outer.unit(), &kCounting);
        { EXPECT_EQ(x86::TilesInUse(panels, kRows).unit(), &kCounting); }
        EXPECT_EQ(g_released, 0);
    }
    EXPECT_EQ(g_released, 1);
    EXPECT_THROW(
        {
            const x86::TilesInUse tiles(panels, kRows);
            throw std::runtime_error("a node fails");
        },
        std::runtime_error);
    EXPECT_EQ(g_released, 2);
}

}  // namespace
}  // namespace tessera::tests
