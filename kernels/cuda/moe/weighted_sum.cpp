#include "../elementwise/rowwise.hpp"
#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <limits>

namespace tessera::cuda_ops {
namespace {

using cuda_kernels::kRowElements;

class WeightedSum {
  public:
    static constexpr const char *kName = "weighted_sum.cuda", *kOp = TSR_OP_WEIGHTED_SUM;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_weighted_sum(node, plan, work);
        if (!plan.supported) return;
        const tsr_tensor& x = *node.inputs[0];
        if (x.dims[0] > std::numeric_limits<int32_t>::max() / 2 || x.dims[1] > std::numeric_limits<int32_t>::max()) {
            return sdk::refuse(plan, "weighted_sum: required %lld elements; supported: fewer than 2^30; missing: more",
                               static_cast<long long>(x.dims[0]));
        }
        std::snprintf(plan.reason, sizeof plan.reason, "a thread an element");
        write_estimate(work, {}, device, plan);
    }

    WeightedSum(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "weighted_sum") {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &weights = *node_.inputs[1];
        cuda_kernels::WeightedSum p{};
        p.x = operand_address(node_, launch, 0);
        p.weights = operand_address(node_, launch, 1);
        p.y = operand_address(node_, launch, 2);
        p.rows = rows_of(x, launch);
        p.x_slot = x.strides[1];
        p.x_row = x.strides[2];
        p.weights_slot = weights.strides[0];
        p.weights_row = weights.strides[1];
        p.y_row = node_.outputs[0]->strides[1];
        p.n = static_cast<int32_t>(x.dims[0]);
        p.slots = static_cast<int32_t>(x.dims[1]);
        const auto blocks = static_cast<uint32_t>((p.n + kRowElements - 1) / kRowElements);
        kernel_.launch(launch.queue, {blocks, std::min(row_bound(x, launch), kMaximumGrid), 1},
                       cuda_kernels::kRowThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

}  // namespace

void set_weighted_sum(tsr_kernel& kernel) noexcept {
    set_kernel<WeightedSum>(kernel);
}

}  // namespace tessera::cuda_ops
