// matmul for few rows, with weights of any type.
#include "estimate.hpp"
#include "few_rows.hpp"
#include "kernel_of.hpp"
#include "matmul_arguments.hpp"

#include <tessera/cpu/checks/matmul.hpp>

#include <cstdio>

namespace tessera::cuda_ops {
namespace {

class MatmulOfRows {
  public:
    static constexpr const char *kName = "matmul.cuda", *kOp = TSR_OP_MATMUL;
    // All modules are compiled for the same cards.
    static const cuda::Module& module(const Build& build) noexcept { return *build.quantise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const cuda::Module& module,
                     tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_matmul(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1];
        if (cpu::matmul_transposed(node))
            return sdk::refuse(plan, "matmul: required transpose_weight; supported: without; missing: it");
        if (refuse_size(node, plan)) return;

        const uint32_t image = cuda::find_image(module, device.compute_capability)->capability;
        const int64_t rows = maximum_rows(x);
        const uint64_t bytes = activation_bytes(weight.type, x.dims[0], image);
        plan.supported = 1;
        plan.workspace_bytes = bytes * static_cast<uint64_t>(rows * batch_of(x));
        std::snprintf(plan.reason, sizeof plan.reason, "%s, a warp an output, up to %d rows at once",
                      bytes == 0       ? "sums in f32"
                      : image >= kDp4a ? "activations in int8, dp4a"
                                       : "activations in f32",
                      cuda_kernels::kMaximumTile);
        Cost cost;
        cost.launches = bytes == 0 ? 1 : 2;
        cost.macs_a_clock = few_rows_macs_a_clock(weight.type, image);
        cost.passes_all_rows =
            static_cast<double>((rows + cuda_kernels::kMaximumTile - 1) / cuda_kernels::kMaximumTile);
        cost.bytes_of_a_pass = cpu::tensor_bytes(weight);
        write_estimate(work, cost, device, plan);
    }

    MatmulOfRows(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node),
          few_rows_(device, info, build, node.inputs[1]->type, node.inputs[0]->dims[0], FewRows::Kind::kRows) {}

    void enqueue(const tsr_launch& launch) const {
        few_rows_.multiply(launch.queue, matmul_arguments(node_, launch), row_bound(*node_.inputs[0], launch));
    }

  private:
    const tsr_node& node_;
    FewRows few_rows_;
};

}  // namespace

void set_matmul(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulOfRows>(kernel);
}

}  // namespace tessera::cuda_ops
