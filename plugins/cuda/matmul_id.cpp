// matmul_id with weights of any type: the ids are read on the device, so that a recording holds for all of them. Each
// row reads its experts for itself, which is right for few rows.
#include "estimate.hpp"
#include "few_rows.hpp"
#include "kernel_of.hpp"
#include "launches.hpp"

#include <tessera/cpu/checks/matmul.hpp>

#include <cstdio>

namespace tessera::cuda_ops {
namespace {

class MatmulId {
  public:
    static constexpr const char *kName = "matmul_id.cuda", *kOp = TSR_OP_MATMUL_ID;
    static const cuda::Module& module(const Build& build) noexcept { return *build.quantise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const cuda::Module& module,
                     tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_matmul_id(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1], &ids = *node.inputs[2];
        constexpr int64_t kMaximum = INT32_MAX / 64;
        if (weight.range != TSR_RANGE_FIXED || x.dims[0] > kMaximum || weight.dims[1] > kMaximum ||
            weight.dims[2] > INT32_MAX || ids.dims[0] > int64_t{kMaximumGrid}) {
            return sdk::refuse(plan,
                               "matmul_id: required %lld x %lld, %lld of %lld experts; supported: fixed, up to %lld, "
                               "%u; missing: larger",
                               static_cast<long long>(x.dims[0]), static_cast<long long>(weight.dims[1]),
                               static_cast<long long>(ids.dims[0]), static_cast<long long>(weight.dims[2]),
                               static_cast<long long>(kMaximum), kMaximumGrid);
        }
        const uint32_t image = cuda::find_image(module, device.compute_capability)->capability;
        const int64_t stored = x.rank == 3 ? x.dims[1] : 1;
        plan.supported = 1;
        const uint64_t bytes = activation_bytes(weight.type, x.dims[0], image);
        plan.workspace_bytes = bytes * static_cast<uint64_t>(maximum_rows(x) * stored);
        std::snprintf(plan.reason, sizeof plan.reason, "activations in %s, a warp an output, a row at a time",
                      bytes > 0 && image >= kDp4a ? "int8" : "f32");
        const double rows = static_cast<double>(maximum_rows(x));
        work.bytes_all_rows = work.bytes_one_row * rows;
        Cost cost;
        cost.launches = bytes == 0 ? 1 : 2;
        cost.macs_a_clock = few_rows_macs_a_clock(weight.type, image);
        write_estimate(work, cost, device, plan);
    }

    MatmulId(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node),
          few_rows_(device, info, build, node.inputs[1]->type, node.inputs[0]->dims[0], FewRows::Kind::kById) {}

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &weight = *node_.inputs[1], &ids = *node_.inputs[2];
        const tsr_tensor& y = *node_.outputs[0];
        cuda_kernels::MatmulId m{};
        cuda_kernels::Matmul& a = m.matmul;
        a.x = operand_address(node_, launch, 0);
        a.weight = operand_address(node_, launch, 1);
        a.y = operand_address(node_, launch, 3);
        a.activations = launch.workspace;
        a.rows = rows_of(x, launch);
        a.x_row = x.strides[x.rank - 1];
        a.batch = x.rank == 3 ? static_cast<int32_t>(x.dims[1]) : 1;
        a.x_batch = x.rank == 3 ? x.strides[1] : 0;
        a.weight_row = weight.strides[1];
        a.weight_batch = weight.strides[2];
        a.y_batch = y.strides[1];
        a.y_row = y.strides[2];
        a.k = static_cast<int32_t>(x.dims[0]);
        a.n = static_cast<int32_t>(y.dims[0]);
        m.ids = operand_address(node_, launch, 2);
        m.ids_slot = ids.strides[0];
        m.ids_row = ids.strides[1];
        m.experts = static_cast<int32_t>(weight.dims[2]);
        few_rows_.multiply_by_id(launch.queue, m, row_bound(x, launch), static_cast<uint32_t>(ids.dims[0]));
    }

  private:
    const tsr_node& node_;
    FewRows few_rows_;
};

}  // namespace

void set_matmul_id(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulId>(kernel);
}

}  // namespace tessera::cuda_ops
