// matmul_group: several products of the same rows, whose activations are converted once.
#include "../kernel_of.hpp"
#include "few_rows.hpp"
#include "matmul_arguments.hpp"
#include "tile_product.hpp"

#include <tessera/cpu/check.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

namespace tessera::cuda_ops {
namespace {

using namespace cuda_kernels;

int64_t aligned(int64_t bytes) noexcept {
    return (bytes + 255) / 256 * 256;
}

void check_group(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    cpu::Check check(node, plan);
    check.counts(2, TSR_MAX_OPERANDS, node.output_count);
    if (check && node.input_count != node.output_count + 1)
        check.no("matmul_group: required %u weights, %u outputs; supported: as many of each; missing: that",
                 node.input_count - 1, node.output_count);
    check.activation(0, "x", 2);
    for (uint32_t i = 1; check && i < node.input_count; ++i) {
        check.weight(i, "a weight", 2);
        check.activation(node.input_count + i - 1, "an output", 2);
        if (!check) return;
        const tsr_tensor& weight = *node.inputs[i];
        check.dim(i, "a weight", 0, node.inputs[0]->dims[0]);
        check.dims(node.input_count + i - 1, "an output", {weight.dims[1], node.inputs[0]->dims[1]});
        check.same_range(0, node.input_count + i - 1);
        constexpr int64_t kMaximum = int64_t{kMaximumGrid} * 64;
        if (check && (weight.range != TSR_RANGE_FIXED || weight.dims[0] > kMaximum || weight.dims[1] > kMaximum)) {
            check.no("matmul_group: required %lld x %lld; supported: fixed weights up to %lld; missing: larger",
                     static_cast<long long>(weight.dims[0]), static_cast<long long>(weight.dims[1]),
                     static_cast<long long>(kMaximum));
        }
    }
    if (check) plan.supported = 1;
}

class MatmulGroup {
  public:
    static constexpr const char *kName = "matmul_group.cuda", *kOp = TSR_OP_MATMUL_GROUP;
    static const cuda::Module& module(const Build& build) noexcept { return *build.product_parts; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const cuda::Module& module,
                     tsr_kernel_plan& plan) {
        check_group(node, plan);
        if (!plan.supported) return;
        const tsr_tensor& x = *node.inputs[0];
        const Card card = card_of(module, device);
        const int64_t rows = maximum_rows(x), few = std::min<int64_t>(rows, kMaximumTile);
        std::array<int64_t, 2> row_of = {};  // plain and interleaved
        int64_t many_bytes = 0;
        std::array<bool, kRowForms> counted = {};
        cpu::Work work;
        const double moved = 4 * static_cast<double>(x.dims[0]);
        work.bytes_one_row = moved;
        work.bytes_all_rows = moved * static_cast<double>(rows);
        for (uint32_t i = 1; i < node.input_count; ++i) {
            const tsr_tensor& weight = *node.inputs[i];
            int64_t& row = row_of[interleaved(weight.type) ? 1 : 0];
            row = std::max(row, static_cast<int64_t>(activation_bytes(weight.type, x.dims[0], card.instructions)));
            const RowForm form = row_form(weight.type, x.dims[0], card);
            if (!counted[static_cast<size_t>(form)]) many_bytes += aligned(rows * row_bytes(form, x.dims[0]));
            counted[static_cast<size_t>(form)] = true;
            const double macs = static_cast<double>(weight.dims[0]) * static_cast<double>(weight.dims[1]);
            work.macs_one_row += macs;
            work.macs_all_rows += macs * static_cast<double>(rows);
            work.bytes_one_row += cpu::tensor_bytes(weight) + 4 * static_cast<double>(weight.dims[1]);
            work.bytes_all_rows += cpu::tensor_bytes(weight) + 4 * static_cast<double>(weight.dims[1] * rows);
        }
        const int64_t few_bytes = aligned(few * row_of[0]) + aligned(few * row_of[1]);
        plan.workspace_bytes = static_cast<uint64_t>(std::max(few_bytes, rows > kMaximumTile ? many_bytes : 0));
        std::snprintf(plan.reason, sizeof plan.reason, "%u products, activations converted once", node.output_count);
        write_product_estimate(work, node.inputs[1]->type, x.dims[0],
                               static_cast<int>(node.output_count) + (few_bytes > 0 ? 1 : 0), device, card, rows, 1,
                               plan);
    }

    MatmulGroup(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node) {
        const int64_t k = node.inputs[0]->dims[0];
        const bool many = maximum_rows(*node.inputs[0]) > kMaximumTile;
        for (uint32_t i = 1; i < node.input_count; ++i) {
            const tsr_type type = node.inputs[i]->type;
            few_.push_back(std::make_unique<FewRows>(device, info, build, type, k, FewRows::Kind::kRows));
            // The row with sums serves products without.
            const int64_t bytes = few_.back()->row_bytes();
            const FewRows*& converts = converts_[interleaved(type) ? 1 : 0];
            if (bytes > 0 && (!converts || bytes > converts->row_bytes())) converts = few_.back().get();
            if (!many) continue;
            tiles_.push_back(std::make_unique<TileProduct>(device, info, build, type, k));
            const RowForm form = tiles_.back()->form();
            if (tiles_.back()->converts() && !conversions_[static_cast<size_t>(form)])
                conversions_[static_cast<size_t>(form)].emplace(device, build, form);
        }
    }

    void enqueue(const tsr_launch& launch) const {
        const uint32_t rows = row_bound(*node_.inputs[0], launch);
        if (rows <= static_cast<uint32_t>(kMaximumTile)) {
            std::array<Matmul, 2> converted = {arguments(launch, 1), arguments(launch, 1)};
            for (size_t i = 0; i < converted.size(); ++i) {
                if (i == 1 && converts_[0])
                    converted[1].activations =
                        static_cast<char*>(launch.workspace) + aligned(rows * converts_[0]->row_bytes());
                if (converts_[i]) converts_[i]->convert(launch.queue, converted[i], rows);
            }
            for (uint32_t i = 1; i < node_.input_count; ++i) {
                Matmul m = arguments(launch, i);
                const Matmul& x = converted[interleaved(node_.inputs[i]->type) ? 1 : 0];
                m.activations = x.activations;
                m.activation_bytes = x.activation_bytes;
                few_[i - 1]->multiply_converted(launch.queue, m, rows);
            }
            return;
        }
        std::array<int64_t, kRowForms> places = {};
        int64_t end = 0;
        Matmul m = arguments(launch, 1);
        for (size_t form = 0; form < kRowForms; ++form) {
            if (!conversions_[form]) continue;
            places[form] = end;
            m.activations = static_cast<char*>(launch.workspace) + end;
            conversions_[form]->launch(launch.queue, rows_to_convert(m), rows);
            end += aligned(int64_t{rows} * row_bytes(static_cast<RowForm>(form), m.k));
        }
        for (uint32_t i = 1; i < node_.input_count; ++i) {
            const TileProduct& product = *tiles_[i - 1];
            m = arguments(launch, i);
            m.activations = static_cast<char*>(launch.workspace) + places[static_cast<size_t>(product.form())];
            product.multiply_rows(launch.queue, m, rows);
        }
    }

  private:
    Matmul arguments(const tsr_launch& launch, uint32_t weight) const noexcept {
        const tsr_tensor &x = *node_.inputs[0], &w = *node_.inputs[weight], &y = *node_.outputs[weight - 1];
        Matmul m{};
        m.x = operand_address(node_, launch, 0);
        m.weight = operand_address(node_, launch, weight);
        m.y = operand_address(node_, launch, node_.input_count + weight - 1);
        m.activations = launch.workspace;
        m.rows = rows_of(x, launch);
        m.x_row = x.strides[1];
        m.weight_row = w.strides[1];
        m.y_row = y.strides[1];
        m.k = static_cast<int32_t>(x.dims[0]);
        m.n = static_cast<int32_t>(w.dims[1]);
        m.batch = 1;
        return m;
    }

    const tsr_node& node_;
    std::vector<std::unique_ptr<FewRows>> few_;
    std::array<const FewRows*, 2> converts_ =
        {};  // of those, plain and interleaved, the ones whose activations serve all
    std::vector<std::unique_ptr<TileProduct>> tiles_;
    std::array<std::optional<ConvertRows>, kRowForms> conversions_;  // by form
};

}  // namespace

void set_matmul_group(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulGroup>(kernel);
}

}  // namespace tessera::cuda_ops
