// Loads the built template from the folder that is the first argument, beside the plugins in the folder that is the
// second, and runs its kernels. Run by check_template.cmake.
#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"

#include <tessera/ops.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <vector>

namespace tessera {
namespace {

std::filesystem::path template_folder, other_folder;

// f32 [n, inner, rows], bounded by the batch's rows, dense.
tsr_tensor tensor(int64_t n, int64_t inner, int64_t rows) {
    tsr_tensor t{};
    t.struct_size = sizeof t;
    t.type = TSR_TYPE_F32;
    t.rank = 3;
    t.range = TSR_RANGE_GENERATION_ROWS;
    t.layout = "";
    const int64_t dims[] = {n, inner, rows, 1};
    int64_t stride = sizeof(float);
    for (int d = 0; d < TSR_MAX_RANK; ++d) {
        t.dims[d] = dims[d];
        t.strides[d] = stride;
        stride *= dims[d];
    }
    return t;
}

class Template : public testing::Test {
  protected:
    static constexpr int64_t kElements = 37, kInner = 3, kRows = 11;
    static constexpr tsr_range kRange = {4, 9};
    static constexpr float kPoison = -12345.0f;

    Template() : hardware_(Hardware::detect()), registry_(load(hardware_)) {}

    static Registry load(const Hardware& hardware) {
        Config config;
        config.default_plugin_folder = false;
        config.plugin_folders = {template_folder};
        if (!other_folder.empty()) config.plugin_folders.push_back(other_folder);
        return Registry::load(config, hardware);
    }

    const tsr_kernel& kernel(std::string_view op) {
        const auto kernels = registry_.kernels("cpu", op);
        if (kernels.empty() || registry_.owner(*kernels[0]).manifest.name != "example") {
            std::string why;
            for (const PluginRecord& record : registry_.plugins())
                why += record.path.string() + ": " + record.reason + "\n";
            throw std::runtime_error("the first kernel for " + std::string(op) + " is not the template's\n" + why);
        }
        return *kernels[0];
    }

    // Outputs with `workers` workers; rows outside of the actual range must stay untouched.
    std::vector<float> run(const tsr_node& node, const std::vector<std::vector<float>>& inputs, uint32_t workers) {
        const tsr_kernel& kernel = this->kernel(node.op);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        EXPECT_EQ(kernel.plan(&kernel, &node, &hardware_.cpu(), &plan), nullptr);
        EXPECT_EQ(plan.supported, 1u) << plan.reason;
        EXPECT_GT(plan.seconds_all_rows, plan.seconds_one_row);
        void* state = nullptr;
        EXPECT_EQ(kernel.prepare(&kernel, &node, &hardware_.cpu(), nullptr, &state), nullptr);

        std::vector<float> output(inputs[0].size(), kPoison);
        std::vector<void*> data;
        for (const auto& input : inputs) data.push_back(const_cast<float*>(input.data()));
        data.push_back(output.data());
        std::array<tsr_range, TSR_RANGE_COUNT> ranges{};
        ranges[TSR_RANGE_GENERATION_ROWS] = kRange;
        tsr_run args{};
        args.struct_size = sizeof args;
        args.data = data.data();
        args.ranges = ranges.data();
        args.workers = workers;
        for (args.worker = 0; args.worker < workers; ++args.worker)
            EXPECT_EQ(kernel.run(&kernel, state, &args), nullptr);
        kernel.release(&kernel, state);
        return output;
    }

    template <typename Expected>
    void expect(const tsr_node& node, const std::vector<std::vector<float>>& inputs, Expected&& expected) {
        const std::vector<float> one = run(node, inputs, 1);
        for (const uint32_t workers : {2u, 3u, 64u}) EXPECT_EQ(run(node, inputs, workers), one);
        for (int64_t i = 0; i < kElements * kInner * kRows; ++i) {
            const int64_t row = i / (kElements * kInner);
            const bool inside = row >= kRange.begin && row < kRange.end;
            ASSERT_NEAR(one[i], inside ? expected(i) : kPoison, 1e-5) << i;
        }
    }

    static std::vector<float> values(float scale) {
        std::vector<float> x(kElements * kInner * kRows);
        for (size_t i = 0; i < x.size(); ++i) x[i] = scale * std::sin(static_cast<float>(i));
        return x;
    }

    Hardware hardware_;
    Registry registry_;
    const tsr_tensor in_ = tensor(kElements, kInner, kRows), out_ = in_;
    const tsr_tensor* inputs_[2] = {&in_, &in_};
    tsr_node make_node(const char* op, uint32_t inputs, uint32_t outputs) const {
        tsr_node node{};
        node.struct_size = sizeof node;
        node.op_version = 1;
        node.op = op;
        node.name = "test";
        node.inputs = inputs_;
        node.input_count = inputs;
        node.outputs = outputs_;
        node.output_count = outputs;
        return node;
    }

    const tsr_tensor* outputs_[1] = {&out_};
};

TEST_F(Template, ReplacesABuiltInKernel) {
    if (!other_folder.empty()) {
        EXPECT_GE(registry_.kernels("cpu", TSR_OP_ADD).size(), 2u);
    }
    const tsr_node node = make_node(TSR_OP_ADD, 2, 1);
    const std::vector<float> a = values(4), b = values(2);
    expect(node, {a, b}, [&](int64_t i) { return a[i] + b[i]; });
}

TEST_F(Template, BringsAnOperator) {
    const tsr_operator* op = registry_.find_operator("soft_cap");
    ASSERT_NE(op, nullptr);
    const tsr_attribute cap = {sizeof cap, TSR_ATTRIBUTE_FLOAT, nullptr, "cap", 0, 3.0, nullptr};
    const tsr_attribute* const attributes[] = {&cap};
    tsr_node node = make_node("soft_cap", 1, 0);
    node.attributes = attributes;
    node.attribute_count = 1;
    tsr_tensor inferred{};
    tsr_tensor* to_infer[] = {&inferred};
    ASSERT_EQ(op->infer(op, &node, to_infer), nullptr);
    EXPECT_EQ(inferred.dims[2], kRows);
    EXPECT_EQ(inferred.strides[2], out_.strides[2]);
    EXPECT_EQ(inferred.range, TSR_RANGE_GENERATION_ROWS);
    node.outputs = outputs_;
    node.output_count = 1;
    const std::vector<float> x = values(9);
    expect(node, {x}, [&](int64_t i) { return 3 * std::tanh(double{x[i]} / 3); });
}

TEST_F(Template, RefusesWhatItCannotDo) {
    const tsr_operator* op = registry_.find_operator("soft_cap");
    ASSERT_NE(op, nullptr);
    tsr_node node = make_node("soft_cap", 1, 1);
    tsr_tensor inferred{};
    tsr_tensor* to_infer[] = {&inferred};
    const tsr_status* status = op->infer(op, &node, to_infer);
    ASSERT_NE(status, nullptr);
    EXPECT_STREQ(status->message, "soft_cap: expected an attribute 'cap' above 0");
    status->destroy(status);

    tsr_tensor half = in_;
    half.type = TSR_TYPE_F16;
    inputs_[0] = &half;
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    const tsr_kernel& kernel = this->kernel("soft_cap");
    EXPECT_EQ(kernel.plan(&kernel, &node, &hardware_.cpu(), &plan), nullptr);
    EXPECT_EQ(plan.supported, 0u);
    EXPECT_STRNE(plan.reason, "");
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc < 2) {
        std::fprintf(stderr, "usage: %s FOLDER_OF_THE_TEMPLATE [FOLDER_OF_OTHER_PLUGINS]\n", argv[0]);
        return 2;
    }
    tessera::template_folder = argv[1];
    if (argc > 2) tessera::other_folder = argv[2];
    return RUN_ALL_TESTS();
}
