// matmul with transpose_weight, in f32, with weights of q8_0, f32, f16 and bf16.
#include "estimate.hpp"
#include "kernel_of.hpp"
#include "matmul_arguments.hpp"

#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <string>

namespace tessera::cuda_ops {
namespace {

// The name of the functions of a type; nullptr: another type.
const char* type_name(tsr_type type) noexcept {
    return type == TSR_TYPE_Q8_0 ? "q8_0" : float_name(type);
}

class MatmulTransposed {
  public:
    static constexpr const char *kName = "matmul_transposed.cuda", *kOp = TSR_OP_MATMUL;
    static const cuda::Module& module(const Build& build) noexcept { return *build.matmul_transposed; }

    static void plan(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_matmul(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1];
        if (!cpu::matmul_transposed(node))
            return sdk::refuse(plan, "matmul: required rows of the weight; supported: transpose_weight; missing: rows");
        if (!type_name(weight.type)) {
            return sdk::refuse(plan,
                               "matmul: required a weight of %s; supported: q8_0 f32 f16 bf16; missing: that type",
                               cpu::format_name(weight.type));
        }
        if (refuse_size(node, plan)) return;
        plan.supported = 1;
        std::snprintf(plan.reason, sizeof plan.reason, "sums in f32, a lane an output");
        const double passes = (maximum_rows(x) + cuda_kernels::kTransposedTile - 1) / cuda_kernels::kTransposedTile;
        Cost cost;
        cost.macs_a_clock = 32;
        cost.passes_all_rows = passes;
        cost.bytes_of_a_pass = cpu::tensor_bytes(weight);
        write_estimate(work, cost, device, plan);
    }

    MatmulTransposed(const tsr_node& node, const tsr_device_info&, tsr_device& device, const cuda::Module& module)
        : node_(node),
          kernel_(device, module, (std::string("matmul_transposed_") + type_name(node.inputs[1]->type)).c_str()) {}

    void enqueue(const tsr_launch& launch) const {
        const cuda_kernels::Matmul a = matmul_arguments(node_, launch);
        constexpr int kOutputs = 32 * cuda_kernels::kMatmulWarps, kTile = cuda_kernels::kTransposedTile;
        const uint32_t rows = row_bound(*node_.inputs[0], launch);
        kernel_.launch(launch.queue,
                       {static_cast<uint32_t>((a.n + kOutputs - 1) / kOutputs),
                        std::min((rows + kTile - 1) / kTile, kMaximumGrid), static_cast<uint32_t>(a.batch)},
                       kOutputs, a);
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
