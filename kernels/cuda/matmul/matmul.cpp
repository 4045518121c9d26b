// matmul with weights of any type: of few rows a warp an output, of many in tiles.
#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "few_rows.hpp"
#include "matmul_arguments.hpp"
#include "tile_product.hpp"

#include <tessera/cpu/checks/matmul.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

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

        const Card card = card_of(module, device);
        const uint32_t image = card.instructions;
        const int64_t rows = maximum_rows(x);
        const uint64_t bytes = activation_bytes(weight.type, x.dims[0], image);
        const int64_t limit = few_rows_limit(weight.type, weight.dims[1], device.processors, image);
        const int64_t few_bytes = std::max(few_rows_bytes(weight.type, x.dims[0], 1, image),
                                           few_rows_bytes(weight.type, x.dims[0], std::min(rows, limit), image));
        plan.supported = 1;
        plan.workspace_bytes = std::max(static_cast<uint64_t>(few_bytes),
                                        tile_row_bytes(weight.type, x.dims[0], card) * static_cast<uint64_t>(rows)) *
                               static_cast<uint64_t>(batch_of(x));
        const bool int8 = bytes > 0 && image >= kDp4a;
        std::snprintf(plan.reason, sizeof plan.reason, "%s; up to %d rows by kernels of few, more in tiles%s",
                      int8 ? "activations in int8" : "sums in f32", static_cast<int>(limit),
                      int8 ? image >= kTensorCores ? " by tensor cores" : " by dp4a" : "");
        write_product_estimate(work, weight.type, bytes > 0 ? 2 : 1, device, card, rows, limit, 1, plan);
    }

    MatmulOfRows(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node), few_rows_(device, info, build, *node.inputs[1], FewRows::Kind::kRows) {
        if (maximum_rows(*node.inputs[0]) <= int64_t{few_rows_.limit()}) return;
        tiles_.emplace(device, info, build, node.inputs[1]->type);
        if (tiles_->converts()) convert_.emplace(device, build, tiles_->layout());
    }

    void enqueue(const tsr_launch& launch) const {
        const uint32_t rows = row_bound(*node_.inputs[0], launch);
        const cuda_kernels::Matmul m = matmul_arguments(node_, launch);
        if (rows <= few_rows_.limit()) {
            few_rows_.multiply(launch.queue, m, rows);
            return;
        }
        if (convert_) convert_->launch(launch.queue, rows_to_convert(m), rows * static_cast<uint32_t>(m.batch));
        tiles_->multiply_rows(launch.queue, m, rows);
    }

  private:
    const tsr_node& node_;
    FewRows few_rows_;
    std::optional<TileProduct> tiles_;
    std::optional<ConvertRows> convert_;
};

}  // namespace

void set_matmul(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulOfRows>(kernel);
}

}  // namespace tessera::cuda_ops
