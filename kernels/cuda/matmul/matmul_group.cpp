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
    check.operands();
    for (uint32_t i = 1; check && i < node.input_count; ++i) {
        const tsr_tensor& weight = *node.inputs[i];
        constexpr int64_t kMaximum = int64_t{kMaximumGrid} * 64;
        if (weight.range != TSR_RANGE_FIXED || weight.dims[0] > kMaximum || weight.dims[1] > kMaximum) {
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
        const int64_t rows = maximum_rows(x), limit = group_limit(node, device, card.instructions);
        const int64_t few = std::min(rows, limit);
        std::array<int64_t, kOrders> of_one = {}, of_few = {};  // bytes by order
        int64_t many_bytes = 0;
        std::array<bool, kRowLayouts> counted = {};
        cpu::Work work;
        const double moved = 4 * static_cast<double>(x.dims[0]);
        work.bytes_one_row = moved;
        work.bytes_all_rows = moved * static_cast<double>(rows);
        for (uint32_t i = 1; i < node.input_count; ++i) {
            const tsr_tensor& weight = *node.inputs[i];
            for (const int64_t count : {int64_t{1}, few}) {
                const Order order = order_of(weight.type, static_cast<uint32_t>(count), card.instructions);
                int64_t& most = (count == 1 ? of_one : of_few)[static_cast<size_t>(order)];
                most = std::max(most, few_rows_bytes(weight.type, x.dims[0], count, card.instructions));
            }
            const RowLayout layout = row_layout(weight.type, card);
            if (!counted[static_cast<size_t>(layout)]) many_bytes += aligned(rows * row_bytes(layout, x.dims[0]));
            counted[static_cast<size_t>(layout)] = true;
            const double macs = static_cast<double>(weight.dims[0]) * static_cast<double>(weight.dims[1]);
            work.macs_one_row += macs;
            work.macs_all_rows += macs * static_cast<double>(rows);
            work.bytes_one_row += cpu::tensor_bytes(weight) + 4 * static_cast<double>(weight.dims[1]);
            work.bytes_all_rows += cpu::tensor_bytes(weight) + 4 * static_cast<double>(weight.dims[1] * rows);
        }
        int64_t one_bytes = 0, few_bytes = 0;
        for (size_t order = 0; order < kOrders; ++order) {
            one_bytes += aligned(of_one[order]);
            few_bytes += aligned(of_few[order]);
        }
        plan.workspace_bytes = static_cast<uint64_t>(std::max({one_bytes, few_bytes, rows > limit ? many_bytes : 0}));
        std::snprintf(plan.reason, sizeof plan.reason, "%u products, activations converted once", node.output_count);
        write_product_estimate(work, node.inputs[1]->type,
                               static_cast<int>(node.output_count) + (few_bytes > 0 ? 1 : 0), device, card, rows, limit,
                               1, plan);
    }

    MatmulGroup(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node), limit_(group_limit(node, info, card_of(module(build), info).instructions)) {
        const bool many = maximum_rows(*node.inputs[0]) > int64_t{limit_};
        for (uint32_t i = 1; i < node.input_count; ++i) {
            const tsr_type type = node.inputs[i]->type;
            few_.push_back(std::make_unique<FewRows>(device, info, build, *node.inputs[i], FewRows::Kind::kRows));
            if (!many) continue;
            tiles_.push_back(std::make_unique<TileProduct>(device, info, build, type));
            const RowLayout layout = tiles_.back()->layout();
            if (tiles_.back()->converts() && !conversions_[static_cast<size_t>(layout)])
                conversions_[static_cast<size_t>(layout)].emplace(device, build, layout);
        }
    }

    void enqueue(const tsr_launch& launch) const {
        const uint32_t rows = row_bound(*node_.inputs[0], launch);
        if (rows <= limit_) {
            multiply_few(launch, rows);
            return;
        }
        std::array<int64_t, kRowLayouts> places = {};
        int64_t end = 0;
        Matmul m = arguments(launch, 1);
        for (size_t layout = 0; layout < kRowLayouts; ++layout) {
            if (!conversions_[layout]) continue;
            places[layout] = end;
            m.activations = static_cast<char*>(launch.workspace) + end;
            conversions_[layout]->launch(launch.queue, rows_to_convert(m), rows);
            end += aligned(int64_t{rows} * row_bytes(static_cast<RowLayout>(layout), m.k));
        }
        for (uint32_t i = 1; i < node_.input_count; ++i) {
            const TileProduct& product = *tiles_[i - 1];
            m = arguments(launch, i);
            m.activations = static_cast<char*>(launch.workspace) + places[static_cast<size_t>(product.layout())];
            product.multiply_rows(launch.queue, m, rows);
        }
    }

  private:
    // Rows up to which no product is faster by tiles.
    static uint32_t group_limit(const tsr_node& node, const tsr_device_info& info, uint32_t image) noexcept {
        int64_t limit = INT64_MAX;
        for (uint32_t i = 1; i < node.input_count; ++i) {
            const tsr_tensor& weight = *node.inputs[i];
            limit = std::min(limit, few_rows_limit(weight.type, weight.dims[1], info.processors, image));
        }
        return static_cast<uint32_t>(limit);
    }

    void multiply_few(const tsr_launch& launch, uint32_t rows) const {
        // Of each order, the product whose activations serve all: a row with sums serves products without.
        std::array<const FewRows*, kOrders> converts = {};
        for (const auto& product : few_) {
            const FewRows*& most = converts[static_cast<size_t>(product->order(rows))];
            if (product->bytes(rows) > (most ? most->bytes(rows) : 0)) most = product.get();
        }
        std::array<Matmul, kOrders> converted;
        int64_t end = 0;
        for (size_t order = 0; order < kOrders; ++order) {
            converted[order] = arguments(launch, 1);
            if (!converts[order]) continue;
            converted[order].activations = static_cast<char*>(launch.workspace) + end;
            converts[order]->convert(launch.queue, converted[order], rows, static_cast<Order>(order));
            end += aligned(converts[order]->bytes(rows));
        }
        for (uint32_t i = 1; i < node_.input_count; ++i) {
            const FewRows& product = *few_[i - 1];
            const Matmul& x = converted[static_cast<size_t>(product.order(rows))];
            Matmul m = arguments(launch, i);
            m.activations = x.activations;
            m.activation_bytes = x.activation_bytes;
            product.multiply_converted(launch.queue, m, rows);
        }
    }

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
    uint32_t limit_;
    std::vector<std::unique_ptr<FewRows>> few_;
    std::vector<std::unique_ptr<TileProduct>> tiles_;
    std::array<std::optional<ConvertRows>, kRowLayouts> conversions_;  // by layout
};

}  // namespace

void set_matmul_group(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulGroup>(kernel);
}

}  // namespace tessera::cuda_ops
