// moe_route.
#include "routing.hpp"

#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/checks/routing.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>

namespace tessera::cuda_ops {
namespace {

class Route {
  public:
    static constexpr const char *kName = "moe_route.cuda", *kOp = TSR_OP_MOE_ROUTE;
    static const cuda::Module& module(const Build& build) noexcept { return *build.routing; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_moe_route(node, plan, work);
        if (!plan.supported) return;
        const cpu::RouteAttributes want(node);
        const int64_t experts = node.inputs[0]->dims[0];
        if (experts > cuda_kernels::kMaximumExperts || want.groups > cuda_kernels::kMaximumGroups ||
            want.used > cuda_kernels::kMaximumUsed) {
            return sdk::refuse(plan,
                               "moe_route: required %lld of %lld experts in %lld groups; supported: %d of %d in %d; "
                               "missing: more",
                               static_cast<long long>(want.used), static_cast<long long>(experts),
                               static_cast<long long>(want.groups), cuda_kernels::kMaximumUsed,
                               cuda_kernels::kMaximumExperts, cuda_kernels::kMaximumGroups);
        }
        std::snprintf(plan.reason, sizeof plan.reason, "a warp a row");
        write_estimate(work, {}, device, plan);
    }

    Route(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node), kernel_(device, module, "moe_route") {
        const cpu::RouteAttributes want(node);
        arguments_.experts = static_cast<int32_t>(node.inputs[0]->dims[0]);
        arguments_.groups = static_cast<int32_t>(want.groups);
        arguments_.groups_used = static_cast<int32_t>(want.groups_used);
        arguments_.used = static_cast<int32_t>(want.used);
        arguments_.keep_at_least = static_cast<int32_t>(std::clamp<int64_t>(want.keep_at_least, 0, want.used));
        arguments_.sigmoid = want.sigmoid;
        arguments_.normalize = want.normalize;
        arguments_.scale = static_cast<float>(want.scale);
        arguments_.keep_ratio = static_cast<float>(want.keep_ratio);
    }

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &logits = *node_.inputs[0], &ids = *node_.outputs[0];
        cuda_kernels::Route r = arguments_;
        r.logits = operand_address(node_, launch, 0);
        r.bias = sdk::has_input(node_, 1) ? operand_address(node_, launch, 1) : nullptr;
        r.ids = operand_address(node_, launch, node_.input_count);
        r.weights = operand_address(node_, launch, node_.input_count + 1);
        r.rows = rows_of(logits, launch);
        r.logits_row = logits.strides[1];
        r.ids_slot = ids.strides[0];
        r.ids_row = ids.strides[1];
        r.weights_row = node_.outputs[1]->strides[1];
        kernel_.launch(launch.queue, {std::min(row_bound(logits, launch), kMaximumGrid), 1, 1}, 32, r);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
    cuda_kernels::Route arguments_{};
};

}  // namespace

void set_moe_route(tsr_kernel& kernel) noexcept {
    set_kernel<Route>(kernel);
}

}  // namespace tessera::cuda_ops
