#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <limits>

namespace tessera::cuda_ops {
namespace {

bool aligned(uint64_t address, const int64_t (&strides)[3]) {
    for (const int64_t stride : strides) address |= static_cast<uint64_t>(stride);
    return multiple(address, 16);
}

class RmsNorm {
  public:
    static constexpr const char *kName = "rms_norm.cuda", *kOp = TSR_OP_RMS_NORM;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rms_norm; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_rms_norm(node, plan, work);
        if (!plan.supported) return;
        const tsr_tensor& x = *node.inputs[0];
        if (x.rank == 1 && x.range != TSR_RANGE_FIXED)
            return sdk::refuse(plan, "rms_norm: required a bounded row length; supported: bounded rows; missing: that");
        if (x.dims[0] > std::numeric_limits<int32_t>::max() / 2 ||
            (x.rank > 2 && x.dims[1] * x.dims[2] > std::numeric_limits<int32_t>::max())) {
            return sdk::refuse(plan,
                               "rms_norm: required %lld elements; supported: fewer than 2^30; missing: 64-bit counts",
                               static_cast<long long>(x.dims[0]));
        }
        std::snprintf(plan.reason, sizeof plan.reason, "a block of threads a row");
        Cost cost;
        cost.macs_a_clock = 32;
        write_estimate(work, cost, device, plan);
    }

    RmsNorm(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node),
          kernel_(device, module, "rms_norm"),
          epsilon_(static_cast<float>(sdk::float_attribute(node, "epsilon", 0))) {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &y = *node_.outputs[0];
        cuda_kernels::RmsNorm a{};
        a.x = operand_address(node_, launch, 0);
        a.weight = operand_address(node_, launch, 1);
        a.y = operand_address(node_, launch, 2);
        a.rows = rows_of_rank(x, launch);
        set_strides(x, a.x_strides);
        set_strides(y, a.y_strides);
        set_inner(x, a.inner);
        a.n = static_cast<int32_t>(x.dims[0]);
        a.epsilon = epsilon_;
        a.vectors = a.n % 4 == 0 && aligned(reinterpret_cast<uint64_t>(a.x), a.x_strides) &&
                    aligned(reinterpret_cast<uint64_t>(a.y), a.y_strides) &&
                    multiple(reinterpret_cast<uint64_t>(a.weight), 16);
        kernel_.launch(launch.queue,
                       {static_cast<uint32_t>(inner_rows(x)), std::min(bound_of_rank(x, launch), kMaximumGrid), 1},
                       cuda_kernels::kRmsNormThreads, a);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
    float epsilon_;
};

}  // namespace

void set_rms_norm(tsr_kernel& kernel) noexcept {
    set_kernel<RmsNorm>(kernel);
}

}  // namespace tessera::cuda_ops
