// The kernels of the simulated plugin: what each generation claims, and that they compute in device memory alone.
#include "simulated_gpu.hpp"

#include <tessera/extensions/launch_pages.h>

#include <gmock/gmock.h>

#include <set>

namespace tessera::test {
namespace {

using sdk::attribute;
using testing::AllOf;
using testing::HasSubstr;

enum class Variant { kPlain, kPrefix, kProjected };

std::unique_ptr<TestNode> attention(const char* op, Variant variant, int64_t dk, int64_t dv,
                                    int32_t range = TSR_RANGE_FIXED) {
    const int64_t heads = 2, latent = 96, rows = 1;
    const int64_t k = variant == Variant::kPlain ? heads * dk : variant == Variant::kPrefix ? dk : latent + 32;
    const bool projected = variant == Variant::kProjected;
    return std::make_unique<TestNode>(
        op,
        std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {dk, heads, rows}, range), make_tensor(TSR_TYPE_F16, {k, 64, 1}),
                            variant == Variant::kPlain ? make_tensor(TSR_TYPE_F16, {heads * dv, 64, 1}) : Tensor{},
                            integers({rows}, {0}, range), integers({rows}, {0}, range), integers({1, 1}, {0}),
                            projected ? make_tensor(TSR_TYPE_F16, {latent, dk - 32, heads}) : Tensor{},
                            projected ? make_tensor(TSR_TYPE_F16, {latent, dv, heads}) : Tensor{}},
        std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {dv, heads, rows}, range)},
        std::vector<tsr_attribute>{attribute("scale", 0.1),
                                   attribute("kv_heads", variant == Variant::kPlain ? heads : int64_t{1}),
                                   attribute("head_dim_v", dv)});
}

tsr_kernel_plan ask(const TestNode& node, const tsr_device_info& device) {
    const tsr_kernel& kernel = simulated_kernel(node.node.op);
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    sdk::check(kernel.plan(&kernel, &node.node, &device, &plan));
    return plan;
}

TEST(SimulatedKernels, FlashAttentionIsClaimedAsTheCudaPluginsClaimIt) {
    struct Claim {
        Variant variant;
        int64_t dk, dv;
        bool legacy, ampere;
    };
    const Claim claims[] = {
        {Variant::kPlain, 192, 128, true, true},     {Variant::kPlain, 128, 128, true, true},
        {Variant::kPlain, 64, 64, true, true},       {Variant::kPlain, 96, 96, false, false},
        {Variant::kPlain, 576, 512, false, false},   {Variant::kProjected, 192, 128, true, true},
        {Variant::kProjected, 80, 64, false, false}, {Variant::kPrefix, 576, 512, false, true},
        {Variant::kPrefix, 128, 128, false, false},  {Variant::kPrefix, 288, 256, false, false},
    };
    for (const Claim& c : claims) {
        const auto flash = attention("flash_attention", c.variant, c.dk, c.dv);
        const auto tiles = attention("tiled_attention", c.variant, c.dk, c.dv);
        for (const uint32_t capability : {600u, 610u, 700u, 750u, 800u, 860u, 890u, 1200u}) {
            const tsr_device_info device = device_info(capability);
            const tsr_kernel_plan plan = ask(*flash, device);
            EXPECT_EQ(plan.supported == 1, capability >= 800 ? c.ampere : c.legacy)
                << static_cast<int>(c.variant) << " " << c.dk << "/" << c.dv << " at " << capability << ": "
                << plan.reason;
            if (!plan.supported) {
                EXPECT_THAT(plan.reason, AllOf(HasSubstr("required"), HasSubstr("supported"), HasSubstr("missing")));
            }
            EXPECT_EQ(ask(*tiles, device).supported, 1u) << c.dk << "/" << c.dv << " at " << capability;
        }
    }
}

TEST(SimulatedKernels, AllOtherPrimitiveOpsAreThere) {
    std::set<std::string> ops;
    for (uint32_t i = 0; i < simulated_plugin().kernel_count; ++i) ops.insert(simulated_plugin().kernels[i]->op);
    for (const plain::Op& op : plain::kOps) EXPECT_TRUE(ops.contains(op.name)) << op.name;
    EXPECT_EQ(ops.size(), plain::kOpCount);
}

TEST(SimulatedKernels, OtherLayoutsAndOlderCardsAreRefused) {
    std::mt19937 rng(1);
    TestNode node("matmul", {random_floats(rng, {32, 1}), random_weight(rng, TSR_TYPE_Q4_0, {32, 4})},
                  {make_tensor(TSR_TYPE_F32, {4, 1})});
    EXPECT_EQ(ask(node, device_info()).supported, 1u);
    EXPECT_THAT(ask(node, device_info(520)).reason, HasSubstr("5.2"));
    node.desc(1).layout = "q4_0_x8";
    EXPECT_THAT(ask(node, device_info()).reason, HasSubstr("q4_0_x8"));
}

TEST(SimulatedKernels, AFasterCardCostsLess) {
    std::mt19937 rng(1);
    TestNode node("matmul", {random_floats(rng, {4096, 64}), random_floats(rng, {4096, 512})},
                  {make_tensor(TSR_TYPE_F32, {512, 64})});
    EXPECT_LT(ask(node, device_info(860)).seconds_all_rows, ask(node, device_info(610)).seconds_all_rows);
    tsr_device_info fast = device_info(610);
    fast.memory_bandwidth = 2e12;
    EXPECT_LT(ask(node, fast).seconds_one_row, ask(node, device_info(610)).seconds_one_row);
}

TEST(SimulatedKernels, ComputesAsTheReference) {
    std::mt19937 rng(2);
    Gpu gpu;
    Tensor x = random_floats(rng, {256, 5}, TSR_RANGE_ROWS), w = random_weight(rng, TSR_TYPE_Q4_K, {256, 9});
    TestNode here("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {9, 5}, TSR_RANGE_ROWS)});
    TestNode there("matmul", {x, w}, {make_tensor(TSR_TYPE_F32, {9, 5}, TSR_RANGE_ROWS)});
    here.run(Ranges::of(4));
    gpu.compute(there, Ranges::of(4));
    EXPECT_EQ(*here.operand(2).bytes, *there.operand(2).bytes);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, "matmul"), 1u);
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, nullptr), 1u);

    // With workspace, absent operands and two outputs.
    Tensor logits = random_floats(rng, {16, 3});
    TestNode route("moe_route", {logits, Tensor{}},
                   {make_tensor(TSR_TYPE_I32, {2, 3}), make_tensor(TSR_TYPE_F32, {2, 3})},
                   {attribute("used", int64_t{2}), attribute("gating", "softmax")});
    gpu.compute(route, Ranges::of(3));
    EXPECT_GT(route.operand(3).at(0, 2), 0.0f);
}

TEST(SimulatedKernels, WrongOperandsAreNamed) {
    std::mt19937 rng(3);
    Gpu gpu;
    TestNode node("matmul", {random_floats(rng, {32, 2}, TSR_RANGE_ROWS), random_floats(rng, {32, 4})},
                  {make_tensor(TSR_TYPE_F32, {4, 2}, TSR_RANGE_ROWS)});
    node.desc(1).name = "blk.7.ffn_up.weight";
    const auto failure = [&](auto&& change) -> std::string {
        try {
            gpu.compute(node, Ranges::of(2), change);
        } catch (const sdk::Failure& f) {
            EXPECT_EQ(f.code(), TSR_INVALID_ARGUMENT);
            return f.what();
        }
        return "nothing failed";
    };
    float host[256] = {};
    EXPECT_THAT(failure([&](std::vector<void*>& data, tsr_launch&) { data[1] = host; }),
                AllOf(HasSubstr("matmul test, input 1 (blk.7.ffn_up.weight)"), HasSubstr("host pointer")));
    EXPECT_THAT(failure([&](std::vector<void*>& data, tsr_launch&) { data[2] = gpu.allocate(16); }),
                AllOf(HasSubstr("output 0"), HasSubstr("32 bytes"), HasSubstr("of which 16 are left")));
    EXPECT_THAT(failure([&](std::vector<void*>& data, tsr_launch&) { data[0] = nullptr; }), HasSubstr("NULL"));
    EXPECT_THAT(
        failure([&](std::vector<void*>&, tsr_launch& launch) { launch.ranges = reinterpret_cast<tsr_range*>(host); }),
        HasSubstr("ranges"));
    Gpu other(610, 1 << 20, "SIM1");
    EXPECT_THAT(failure([&](std::vector<void*>& data, tsr_launch&) { data[0] = other.allocate(4096); }),
                HasSubstr("no address of this device"));
}

TEST(SimulatedKernels, BadDataFailsAtTheWaitAndTheDeviceGoesOn) {
    Gpu gpu;
    TestNode node("get_rows", {floats({2, 3}, {1, 2, 3, 4, 5, 6}), integers({1}, {3})},
                  {make_tensor(TSR_TYPE_F32, {2, 1})});
    EXPECT_THROW(gpu.compute(node, Ranges::of(1)), sdk::Failure);
    node.operand(1).integers()[0] = 1;
    gpu.compute(node, Ranges::of(1));
    EXPECT_EQ(node.operand(2).at(1), 4.0f);
}

TEST(SimulatedKernels, BoundsOfALaunchAreKept) {
    std::mt19937 rng(4);
    Gpu gpu;
    TestNode node("matmul", {random_floats(rng, {32, 4}, TSR_RANGE_ROWS), random_floats(rng, {32, 4})},
                  {make_tensor(TSR_TYPE_F32, {4, 4}, TSR_RANGE_ROWS)});
    const auto compute = [&](const Ranges& ranges, auto&& change) {
        return failure([&] { gpu.compute(node, ranges, change); }, TSR_INVALID_ARGUMENT);
    };
    // Looser bounds are no fault.
    int32_t bounds[TSR_RANGE_COUNT] = {4, 4, 4, 4};
    gpu.compute(node, Ranges::of(2), [&](auto&, tsr_launch& launch) { launch.row_bounds = bounds; });
    bounds[TSR_RANGE_ROWS] = 1;
    EXPECT_THAT(compute(Ranges::of(2), [&](auto&, tsr_launch& launch) { launch.row_bounds = bounds; }),
                AllOf(HasSubstr("matmul test"), HasSubstr("rows:"), HasSubstr("row bound, which is 1")));
    EXPECT_THAT(compute(Ranges::of(5), [](auto&, tsr_launch&) {}), HasSubstr("of which there are 4"));
    Ranges reversed = Ranges::of(2);
    reversed.all[TSR_RANGE_PROMPT_ROWS] = {2, 1};
    EXPECT_THAT(compute(reversed, [](auto&, tsr_launch&) {}), AllOf(HasSubstr("prompt rows"), HasSubstr("[2, 1)")));

    auto attends = attention("flash_attention", Variant::kPlain, 64, 64);
    attends->operand(3).integers()[0] = 9;
    std::fill(attends->operand(1).bytes->begin(), attends->operand(1).bytes->end(), 0);
    std::fill(attends->operand(2).bytes->begin(), attends->operand(2).bytes->end(), 0);
    gpu.compute(*attends, Ranges::of(1), [](auto&, tsr_launch& launch) { launch.token_bound = 10; });
    EXPECT_THAT(
        failure(
            [&] { gpu.compute(*attends, Ranges::of(1), [](auto&, tsr_launch& launch) { launch.token_bound = 9; }); },
            TSR_INVALID_ARGUMENT),
        AllOf(HasSubstr("token bound, which is 9"), HasSubstr("found 9")));
}

TEST(SimulatedKernels, RefusePagesPastTheBoundOfTheLaunch) {
    Gpu gpu;
    auto attends = attention("flash_attention", Variant::kPlain, 64, 64, TSR_RANGE_ROWS);
    attends->operand(3).integers()[0] = 9;
    std::fill(attends->operand(1).bytes->begin(), attends->operand(1).bytes->end(), 0);
    std::fill(attends->operand(2).bytes->begin(), attends->operand(2).bytes->end(), 0);
    int64_t bounds[TSR_RANGE_COUNT] = {1, 0, 0, 0};
    const tsr_launch_pages pages{{sizeof pages, 0, nullptr, TSR_LAUNCH_PAGES}, bounds};
    const auto with_pages = [&](auto&, tsr_launch& launch) { launch.next = &pages.chain; };
    gpu.compute(*attends, Ranges::of(1), with_pages);
    bounds[TSR_RANGE_ROWS] = 0;
    EXPECT_THAT(failure([&] { gpu.compute(*attends, Ranges::of(1), with_pages); }, TSR_INVALID_ARGUMENT),
                AllOf(HasSubstr("rows: expected no more pages"), HasSubstr("which is 0; found 1")));
}

TEST(SimulatedKernels, LackWhatTheyAreToldToLack) {
    std::mt19937 rng(1);
    TestNode node("matmul", {random_floats(rng, {32, 1}), random_weight(rng, TSR_TYPE_Q4_0, {32, 4})},
                  {make_tensor(TSR_TYPE_F32, {4, 1})});
    const tsr_device_info device = device_info(860, 64 << 20, "SIM5");
    for (const auto& [lacks, supported] : {std::pair{"", 1u}, {"q4_1,add", 1u}, {"matmul", 0u}, {"rope,q4_0", 0u}}) {
        const tsr_simulated_options how = options(TSR_SIMULATED_RANDOM, 1, 0, lacks);
        ASSERT_EQ(failures().configure("SIM5", &how), 1u);
        EXPECT_EQ(ask(node, device).supported, supported) << lacks;
        if (supported) continue;
        EXPECT_THAT(ask(node, device).reason, AllOf(HasSubstr("required"), HasSubstr("SIM5")));
    }
    failures().configure("SIM5", nullptr);
    EXPECT_EQ(ask(node, device).supported, 1u);
}

TEST(SimulatedKernels, AreOfOneDevice) {
    std::mt19937 rng(1);
    Gpu gpu, other(610, 1 << 20, "SIM1");
    TestNode node("add", {random_floats(rng, {8, 1}), random_floats(rng, {8, 1})}, {make_tensor(TSR_TYPE_F32, {8, 1})});
    EXPECT_THAT(
        failure(
            [&] { gpu.compute(node, Ranges::of(1), [&](auto&, tsr_launch& launch) { launch.queue = other.queue; }); },
            TSR_INVALID_ARGUMENT),
        AllOf(HasSubstr("SIM0"), HasSubstr("queue")));
    const tsr_kernel& kernel = simulated_kernel("add");
    EXPECT_STREQ(kernel.interop, TSR_SIMULATED_INTEROP);
    EXPECT_EQ(kernel.device_abi, uint32_t{TSR_DEVICE_ABI});
    tsr_device foreign{};
    foreign.interop = "cuda-driver/1";
    void* state = nullptr;
    for (tsr_device* wrong : {static_cast<tsr_device*>(nullptr), &foreign}) {
        EXPECT_THAT(message_of(kernel.prepare(&kernel, &node.node, &gpu.info, wrong, &state)),
                    AllOf(HasSubstr("add"), HasSubstr(TSR_SIMULATED_INTEROP)));
    }
}

TEST(SimulatedKernels, StateIsNotReleasedUnderWay) {
    Gpu gpu(options(TSR_SIMULATED_ON_WAIT));
    TestNode node("add", {floats({1, 1}, {1}), floats({1, 1}, {2})}, {make_tensor(TSR_TYPE_F32, {1, 1})});
    {
        Gpu::Prepared prepared(gpu, node);
        const tsr_launch launch = prepared.launch(Ranges::of(1));
        sdk::check(prepared.kernel.enqueue(&prepared.kernel, prepared.state, &launch));
    }
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INTERNAL), HasSubstr("still on a queue"));
    EXPECT_THAT(failure([&] { gpu.wait(); }, TSR_INVALID_ARGUMENT), HasSubstr("a kernel of add was released"));
    gpu.wait();
    EXPECT_EQ(failures().count("SIM0", TSR_SIMULATED_EXECUTE_KERNEL, nullptr), 0u);
}

}  // namespace
}  // namespace tessera::test
