// matmul with transpose_weight, in f32, with weights of any type.
#include "../estimate.hpp"
#include "../formats/decode.hpp"
#include "../kernel_of.hpp"
#include "few_rows.hpp"
#include "matmul_arguments.hpp"

#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <string>

namespace tessera::cuda_ops {
namespace {

class MatmulTransposed {
  public:
    static constexpr const char *kName = "matmul_transposed.cuda", *kOp = TSR_OP_MATMUL;
    static const cuda::Module& module(const Build& build) noexcept { return *build.quantise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_matmul(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1];
        if (!cpu::matmul_transposed(node))
            return sdk::refuse(plan, "matmul: required rows of the weight; supported: transpose_weight; missing: rows");
        if (refuse_size(node, plan)) return;
        plan.supported = 1;
        std::snprintf(plan.reason, sizeof plan.reason, "sums in f32, a lane 16 outputs");
        const double passes = (maximum_rows(x) + cuda_kernels::kTransposedTile - 1) / cuda_kernels::kTransposedTile;
        Cost cost;
        cost.macs_a_clock = 32;
        cost.passes_all_rows = passes;
        cost.bytes_of_a_pass = cpu::tensor_bytes(weight);
        write_estimate(work, cost, device, plan);
    }

    MatmulTransposed(const tsr_node& node, const tsr_device_info&, tsr_device& device, const Build& build)
        : node_(node),
          kernel_(device, weights_module(build, node.inputs[1]->type),
                  (std::string("matmul_transposed_") + cpu::format_name(node.inputs[1]->type)).c_str()) {}

    void enqueue(const tsr_launch& launch) const {
        const cuda_kernels::Matmul a = matmul_arguments(node_, launch);
        constexpr int kOutputs = cuda_kernels::kTransposedOutputs, kTile = cuda_kernels::kTransposedTile;
        const uint32_t rows = row_bound(*node_.inputs[0], launch);
        kernel_.launch(launch.queue,
                       {static_cast<uint32_t>((a.n + kOutputs - 1) / kOutputs),
                        std::min((rows + kTile - 1) / kTile, kMaximumGrid), static_cast<uint32_t>(a.batch)},
                       32 * cuda_kernels::kTransposedWarps, a);
    }

  private:
    const tsr_node& node_;
    cuda::Kernel kernel_;
};

}  // namespace

void set_matmul_transposed(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulTransposed>(kernel);
}

}  // namespace tessera::cuda_ops
