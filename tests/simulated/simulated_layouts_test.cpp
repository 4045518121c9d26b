// Packed layouts on the simulated device: who asks for them, and what packing there refuses.
#include "simulated_gpu.hpp"

#include <gmock/gmock.h>

#include <random>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kThere = "q8_0_simulated_x8";
constexpr const char* kHere = "q8_0_simulated_x4";

const tsr_layout& layout_of(std::string_view name) {
    const tsr_plugin& plugin = simulated_plugin();
    for (uint32_t i = 0; i < plugin.layout_count; ++i) {
        if (name == plugin.layouts[i]->name) return *plugin.layouts[i];
    }
    throw std::runtime_error("no such layout");
}

std::unique_ptr<TestNode> product(tsr_type type, int64_t rows) {
    return std::make_unique<TestNode>(
        "matmul", std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {64, 2}), make_tensor(type, {64, rows})},
        std::vector<Tensor>{make_tensor(TSR_TYPE_F32, {rows, 2})});
}

// The first layout that a product asks for; "": canonical.
std::string asked(tsr_type type, int64_t rows, uint32_t capability, uint32_t without) {
    const tsr_simulated_options how = options(TSR_SIMULATED_RANDOM, 1, without);
    EXPECT_EQ(failures().configure("SIM0", &how), 1u);
    const auto node = product(type, rows);
    const tsr_kernel& kernel = simulated_kernel("matmul");
    const tsr_device_info device = device_info(capability);
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    sdk::check(kernel.plan(&kernel, &node->node, &device, &plan));
    EXPECT_EQ(plan.supported, 1u) << plan.reason;
    failures().configure("SIM0", nullptr);
    return plan.layouts[1] ? plan.layouts[1][0] : "";
}

TEST(SimulatedLayouts, AreAskedForByProductsOfTheNewerGeneration) {
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 16, 860, 0), kThere);
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 16, 860, TSR_SIMULATED_NO_PACKING), kHere);
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 16, 860, TSR_SIMULATED_NO_LAYOUTS), "");
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 16, 750, 0), "");
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 12, 860, 0), "") << "12 rows are no whole groups";
    EXPECT_EQ(asked(TSR_TYPE_Q8_0, 12, 860, TSR_SIMULATED_NO_PACKING), kHere);
    EXPECT_EQ(asked(TSR_TYPE_F16, 16, 860, 0), "f16_simulated_x8");
    EXPECT_EQ(asked(TSR_TYPE_Q4_0, 16, 860, 0), "");
}

// Canonical rows of 2 groups on the device, and room for them packed.
class Packing {
  public:
    explicit Packing(const tsr_simulated_options& how = options(TSR_SIMULATED_RANDOM))
        : gpu(how), canonical(2 * 8 * 68), packed(2 * layout.group_bytes(&layout, 64)) {
        std::mt19937 random(1);
        for (unsigned char& byte : canonical) byte = static_cast<unsigned char>(random());
        rows = gpu.upload(canonical.data(), canonical.size());
        target = gpu.allocate(packed.size());
    }
    void pack(int64_t elements = 64, int64_t groups = 2, void* from = nullptr, void* to = nullptr) {
        sdk::check(layout.enqueue_pack(&layout, gpu.device, gpu.queue, elements, groups, from ? from : rows,
                                       to ? to : target));
    }

    const tsr_layout& layout = layout_of(kThere);
    Gpu gpu;
    std::vector<unsigned char> canonical, packed;
    void *rows, *target;
};

TEST(SimulatedLayouts, PackThereWhatTheHostPacks) {
    for (tsr_simulated_policy policy = TSR_SIMULATED_RANDOM; policy <= TSR_SIMULATED_NEWEST_LAST; ++policy) {
        Packing p(options(policy));
        p.pack();
        std::vector<unsigned char> got(p.packed.size()), back(p.canonical.size());
        p.gpu.download(got.data(), p.target, got.size());
        p.layout.pack(&p.layout, 64, 2, p.canonical.data(), p.packed.data());
        EXPECT_EQ(got, p.packed);
        void* there = p.gpu.allocate(back.size());
        sdk::check(p.layout.enqueue_unpack(&p.layout, p.gpu.device, p.gpu.queue, 64, 2, p.target, there));
        p.gpu.download(back.data(), there, back.size());
        EXPECT_EQ(back, p.canonical);
    }
}

TEST(SimulatedLayouts, NothingIsPackedBeforeItsTime) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer reports the early read itself";
#endif
    Packing p(options(TSR_SIMULATED_ON_WAIT));
    const tsr_queue other = p.gpu.create_queue();
    p.pack();
    std::vector<unsigned char> got(p.packed.size(), 1);
    p.gpu.put_download(got.data(), p.target, got.size(), other);  // without an event
    p.gpu.wait(other);
    EXPECT_EQ(got, std::vector<unsigned char>(got.size(), 0xFF)) << "memory that nobody wrote to";
    p.gpu.wait();
}

TEST(SimulatedLayouts, RefuseWhatIsNotTheDevices) {
    Packing p;
    const auto refused = [](auto&& body) { return failure(body, TSR_INVALID_ARGUMENT); };
    EXPECT_THAT(refused([&] { p.pack(64, 2, p.canonical.data()); }),
                AllOf(HasSubstr(kThere), HasSubstr("a host pointer?")));
    EXPECT_THAT(refused([&] { p.pack(64, 3); }), HasSubstr("canonical rows: "));
    EXPECT_THAT(refused([&] { p.pack(64, 2, nullptr, static_cast<char*>(p.target) + 8); }),
                AllOf(HasSubstr("packed rows: "), HasSubstr("past the end of an allocation")));
    EXPECT_THAT(refused([&] { p.pack(48); }), HasSubstr("a multiple of 32"));
    EXPECT_THAT(refused([&] { p.pack(64, 0); }), HasSubstr("0 groups"));
    p.gpu.begin_recording();
    EXPECT_THAT(refused([&] { p.pack(); }), HasSubstr("enqueue_pack while recording"));
    sdk::check(p.gpu.device->end_recording(p.gpu.device, p.gpu.queue, nullptr));
}

TEST(SimulatedLayouts, AProductRefusesALayoutThatItDoesNotKnow) {
    const auto node = product(TSR_TYPE_Q8_0, 16);
    tsr_tensor weight = *node->node.inputs[1];
    weight.layout = "q8_0_x8";
    std::vector<const tsr_tensor*> inputs(node->node.inputs, node->node.inputs + 2);
    inputs[1] = &weight;
    tsr_node other = node->node;
    other.inputs = inputs.data();
    const tsr_kernel& kernel = simulated_kernel("matmul");
    const tsr_device_info device = device_info();
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    sdk::check(kernel.plan(&kernel, &other, &device, &plan));
    EXPECT_EQ(plan.supported, 0u);
    EXPECT_THAT(plan.reason, HasSubstr("q8_0_x8"));
}

}  // namespace
}  // namespace tessera::test
