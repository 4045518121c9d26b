// The library as a host sees it.
#include "node_builder.hpp"

#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <set>

namespace tessera::test {
namespace {

const tsr_plugin* load() {
    static void* library = dlopen(TSR_PLUGIN_DIR "/tessera_reference.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) return nullptr;
    const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
    tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    return query ? query(&host) : nullptr;
}

TEST(ReferencePlugin, ClaimsEveryPrimitiveOpOnce) {
    const tsr_plugin* plugin = load();
    ASSERT_NE(plugin, nullptr);
    EXPECT_STREQ(plugin->name, "reference");
    std::set<std::string> ops, names;
    for (uint32_t i = 0; i < plugin->kernel_count; ++i) {
        ops.insert(plugin->kernels[i]->op);
        names.insert(plugin->kernels[i]->name);
        EXPECT_STREQ(plugin->kernels[i]->device_kind, "cpu");
        EXPECT_EQ(plugin->kernels[i]->priority, -100);
    }
    EXPECT_EQ(ops, (std::set<std::string>{"get_rows",       "rms_norm",    "matmul",      "matmul_id",
                                          "weighted_sum",   "moe_route",   "rope",        "scale_by_position",
                                          "scale",          "sigmoid_mul", "add",         "mul",
                                          "silu_mul",       "glu",         "add_id",      "hadamard",
                                          "convert",        "transpose",   "cache_write", "flash_attention",
                                          "tiled_attention"}));
    EXPECT_EQ(names.size(), plugin->kernel_count);
}

TEST(ReferencePlugin, OtherMajorVersionsAreDeclined) {
    ASSERT_NE(load(), nullptr);
    const auto query = reinterpret_cast<tsr_plugin_query_function>(
        dlsym(dlopen(TSR_PLUGIN_DIR "/tessera_reference.so", RTLD_NOW | RTLD_LOCAL), TSR_PLUGIN_QUERY));
    tsr_host host{};
    host.abi_major = TSR_ABI_MAJOR + 1;
    EXPECT_EQ(query(&host), nullptr);
    EXPECT_EQ(query(nullptr), nullptr);
}

TEST(ReferencePlugin, PlansPreparesAndRunsThroughTheTable) {
    const tsr_plugin* plugin = load();
    ASSERT_NE(plugin, nullptr);
    const tsr_kernel* kernel = nullptr;
    for (uint32_t i = 0; i < plugin->kernel_count; ++i) {
        if (std::string_view(plugin->kernels[i]->op) == "get_rows") kernel = plugin->kernels[i];
    }
    ASSERT_NE(kernel, nullptr);
    Tensor table = floats({2, 3}, {1, 2, 3, 4, 5, 6}), ids = integers({1}, {2}),
           out = make_tensor(TSR_TYPE_F32, {2, 1});
    TestNode node("get_rows", {table, ids}, {out});
    tsr_device_info device{};
    device.struct_size = sizeof device;
    device.kind = "cpu";
    device.threads = 2;
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    ASSERT_EQ(kernel->plan(kernel, &node.node, &device, &plan), nullptr);
    EXPECT_EQ(plan.supported, 1u);
    EXPECT_GT(plan.seconds_one_row, 0);
    EXPECT_GE(plan.seconds_all_rows, plan.seconds_one_row);
    void* state = nullptr;
    ASSERT_EQ(kernel->prepare(kernel, &node.node, &device, nullptr, &state), nullptr);
    void* data[] = {table.bytes->data(), ids.bytes->data(), out.bytes->data()};
    Ranges ranges;
    tsr_run run{};
    run.struct_size = sizeof run;
    run.data = data;
    run.ranges = ranges.all;
    run.workers = 2;
    for (run.worker = 0; run.worker < 2; ++run.worker) ASSERT_EQ(kernel->run(kernel, state, &run), nullptr);
    EXPECT_EQ(out.at(0), 5.0f);
    ids.integers()[0] = 3;
    const tsr_status* status = nullptr;
    for (run.worker = 0; run.worker < 2 && !status; ++run.worker) status = kernel->run(kernel, state, &run);
    ASSERT_NE(status, nullptr);
    EXPECT_EQ(status->code, TSR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(status->message).find("row 3 of a table of 3"), std::string::npos) << status->message;
    status->destroy(status);
    kernel->release(kernel, state);
}

}  // namespace
}  // namespace tessera::test
