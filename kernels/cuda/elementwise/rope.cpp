#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"
#include "rowwise.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/elementwise/rope.hpp>
#include <tessera/cuda/launch.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

namespace tessera::cuda_ops {
namespace {

using cuda_kernels::kMaximumPairs;
using cuda_kernels::kRopeHeads;

class Rope {
  public:
    static constexpr const char *kName = "rope.cuda", *kOp = TSR_OP_ROPE;
    static const cuda::Module& module(const Build& build) noexcept { return *build.rowwise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_rope(node, plan, work);
        if (!plan.supported) return;
        const tsr_tensor& x = *node.inputs[0];
        if (x.dims[0] > 2 * kMaximumPairs || x.dims[1] > std::numeric_limits<int32_t>::max() / kMaximumPairs) {
            return sdk::refuse(plan, "rope: required %lld heads of %lld; supported: heads of up to %d; missing: larger",
                               static_cast<long long>(x.dims[1]), static_cast<long long>(x.dims[0]), 2 * kMaximumPairs);
        }
        std::snprintf(plan.reason, sizeof plan.reason, "a thread a pair, angles once for %d heads", kRopeHeads);
        write_estimate(work, {}, device, plan);
    }

    Rope(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "rope") {
        const auto table = std::make_unique<cpu::elementwise::RopeTable>(node);
        arguments_.pairs = static_cast<int32_t>(node.inputs[0]->dims[0] / 2);
        std::copy_n(table->frequencies.begin(), arguments_.pairs, arguments_.frequencies);
        arguments_.magnitude = static_cast<float>(table->magnitude);
        arguments_.neox = table->neox;
    }

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &y = *node_.outputs[0];
        cuda_kernels::Rope p = arguments_;
        p.x = operand_address(node_, launch, 0);
        p.positions = operand_address(node_, launch, 1);
        p.factors = sdk::has_input(node_, 2) ? operand_address(node_, launch, 2) : nullptr;
        p.y = operand_address(node_, launch, node_.input_count);
        p.rows = rows_of(x, launch);
        p.x_head = x.strides[1];
        p.x_row = x.strides[2];
        p.y_head = y.strides[1];
        p.y_row = y.strides[2];
        p.position = node_.inputs[1]->strides[0];
        p.heads = static_cast<int32_t>(x.dims[1]);
        const auto groups = static_cast<uint32_t>((p.heads + kRopeHeads - 1) / kRopeHeads);
        kernel_.launch(launch.queue, {groups, std::min(row_bound(x, launch), kMaximumGrid), 1},
                       cuda_kernels::kRopeThreads, p);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
    cuda_kernels::Rope arguments_{};
};

}  // namespace

void set_rope(tsr_kernel& kernel) noexcept {
    set_kernel<Rope>(kernel);
}

}  // namespace tessera::cuda_ops
