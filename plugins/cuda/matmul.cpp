// matmul with weights of q8_0, f32, f16 and bf16, for few rows.
#include "estimate.hpp"
#include "matmul_arguments.hpp"
#include "ops.hpp"
#include "q8_0.hpp"

#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/cuda/launch.hpp>

#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace tessera::cuda_ops {
namespace {

using cuda::Kernel;
using cuda_kernels::Matmul;

constexpr std::array kTiles = {1, 2, 4, 8};
static_assert(kTiles.back() == cuda_kernels::kMaximumTile);

const cuda::Module& module_for(const Build& build, tsr_type type) noexcept {
    return float_name(type) ? *build.matmul_float : *build.matmul_q8_0;
}

// Of one row and one matrix of the batch; 0: the product reads x itself.
uint64_t activation_bytes(const tsr_node& node, uint32_t image_capability) noexcept {
    return float_name(node.inputs[1]->type) ? 0 : q8_activation_bytes(node.inputs[0]->dims[0], image_capability);
}

double macs_a_clock(tsr_type type, uint32_t capability) noexcept {
    return type == TSR_TYPE_Q8_0 ? q8_macs_a_clock(capability) : 32;
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    return sdk::guarded([&] {
        cpu::Work work;
        cpu::check_matmul(*node, *plan, work);
        if (!plan->supported) return;
        plan->supported = 0;
        const tsr_tensor &x = *node->inputs[0], &weight = *node->inputs[1];
        if (!float_name(weight.type) && weight.type != TSR_TYPE_Q8_0) {
            return sdk::refuse(*plan,
                               "matmul: required a weight of %s; supported: q8_0 f32 f16 bf16; missing: that type",
                               cpu::format_name(weight.type));
        }
        if (cpu::matmul_transposed(*node))
            return sdk::refuse(*plan, "matmul: required transpose_weight; supported: without; missing: it");
        if (refuse_size(*node, *plan)) return;
        const Build& build = build_of(self);
        const cuda::Module& module = module_for(build, weight.type);
        if (refuse_card(build, module, *device, node->op, *plan)) return;

        const uint32_t image = cuda::find_image(module, device->compute_capability)->capability;
        const int64_t rows = maximum_rows(x);
        const uint64_t bytes = activation_bytes(*node, image);
        plan->supported = 1;
        plan->workspace_bytes = bytes * static_cast<uint64_t>(rows * batch_of(x));
        std::snprintf(plan->reason, sizeof plan->reason, "%s, a warp an output, up to %d rows at once",
                      bytes == 0       ? "sums in f32"
                      : image >= kDp4a ? "activations in int8, dp4a"
                                       : "activations in f32",
                      cuda_kernels::kMaximumTile);
        Cost cost;
        cost.launches = bytes == 0 ? 1 : 2;
        cost.macs_a_clock = macs_a_clock(weight.type, image);
        cost.passes_all_rows =
            static_cast<double>((rows + cuda_kernels::kMaximumTile - 1) / cuda_kernels::kMaximumTile);
        cost.bytes_of_a_pass = cpu::tensor_bytes(weight);
        write_estimate(work, cost, *device, *plan);
    });
}

struct State {
    const tsr_node& node;
    std::optional<Kernel> quantise;
    // By tile, and of q8_0 by width; of floats in the first column.
    std::array<std::array<std::optional<Kernel>, kQ8Widths.size()>, kTiles.size()> products;
    int64_t activation_bytes;
};

const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info, tsr_device* device,
                          void** state) {
    return sdk::guarded([&] {
        const tsr_type type = node->inputs[1]->type;
        const cuda::Module& module = module_for(build_of(self), type);
        const cuda::Image* image = cuda::find_image(module, info->compute_capability);
        if (!image) throw sdk::Failure(TSR_UNSUPPORTED, cuda::missing_image(module, info->compute_capability));
        auto made = std::make_unique<State>(*node);
        made->activation_bytes = static_cast<int64_t>(activation_bytes(*node, image->capability));
        if (made->activation_bytes > 0) made->quantise.emplace(*device, module, "quantise_activations");
        for (size_t t = 0; t < kTiles.size(); ++t) {
            const std::string tile = "_tile" + std::to_string(kTiles[t]);
            if (const char* name = float_name(type)) {
                made->products[t][0].emplace(*device, module, (std::string("matmul_") + name + tile).c_str());
                continue;
            }
            for (size_t w = 0; w < kQ8Widths.size(); ++w) {
                const std::string name = "matmul_q8_0_width" + std::to_string(kQ8Widths[w]) + tile;
                made->products[t][w].emplace(*device, module, name.c_str());
            }
        }
        *state = made.release();
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

bool reads_vectors(const Matmul& a, tsr_type type) noexcept {
    uint64_t all = reinterpret_cast<uint64_t>(a.weight) | reinterpret_cast<uint64_t>(a.x) |
                   static_cast<uint64_t>(a.weight_row | a.x_row);
    if (a.batch > 1) all |= static_cast<uint64_t>(a.weight_batch | a.x_batch);
    return multiple(all, 16) && a.k % (type == TSR_TYPE_F32 ? 4 : 8) == 0;
}

const tsr_status* enqueue(const tsr_kernel*, void* state, const tsr_launch* launch) {
    return sdk::guarded([&] {
        const State& prepared = *static_cast<State*>(state);
        const tsr_node& node = prepared.node;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1];
        Matmul a = matmul_arguments(node, *launch);
        a.activation_bytes = prepared.activation_bytes;
        const uint32_t rows = row_bound(x, *launch);
        const auto batch = static_cast<uint32_t>(a.batch);

        size_t width = 0;
        if (prepared.quantise) {
            width = q8_width_index(a);
            launch_quantise(*prepared.quantise, launch->queue, a, rows);
        } else {
            a.vectors = reads_vectors(a, weight.type) ? 1 : 0;
        }
        size_t tile = 0;
        while (tile + 1 < kTiles.size() && static_cast<uint32_t>(kTiles[tile]) < rows) ++tile;
        const auto tile_rows = static_cast<uint32_t>(kTiles[tile]);
        const auto outputs = static_cast<uint32_t>((a.n + cuda_kernels::kMatmulWarps - 1) / cuda_kernels::kMatmulWarps);
        prepared.products[tile][width]->launch(
            launch->queue, {outputs, std::min((rows + tile_rows - 1) / tile_rows, kMaximumGrid), batch},
            32 * cuda_kernels::kMatmulWarps, a);
    });
}

}  // namespace

void set_matmul(tsr_kernel& kernel) noexcept {
    kernel.name = "matmul.cuda";
    kernel.op = TSR_OP_MATMUL;
    kernel.plan = plan;
    kernel.prepare = prepare;
    kernel.release = release;
    kernel.enqueue = enqueue;
}

}  // namespace tessera::cuda_ops
