#include "estimate.hpp"
#include "launches.hpp"
#include "ops.hpp"

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cuda/launch.hpp>

#include <cstdio>
#include <limits>

namespace tessera::cuda_ops {
namespace {

using cuda::Kernel;
using cuda_kernels::RmsNorm;

struct State {
    const tsr_node& node;
    Kernel kernel;
};

bool aligned(uint64_t address, const int64_t (&strides)[3]) {
    for (const int64_t stride : strides) address |= static_cast<uint64_t>(stride);
    return multiple(address, 16);
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    return sdk::guarded([&] {
        const Build& build = build_of(self);
        if (refuse_card(build, *build.rms_norm, *device, node->op, *plan)) return;
        cpu::Work work;
        cpu::check_rms_norm(*node, *plan, work);
        if (!plan->supported) return;
        const tsr_tensor& x = *node->inputs[0];
        if (x.rank == 1 && x.range != TSR_RANGE_FIXED)
            return sdk::refuse(*plan,
                               "rms_norm: required a bounded row length; supported: bounded rows; missing: that");
        if (x.dims[0] > std::numeric_limits<int32_t>::max() / 2 ||
            (x.rank > 2 && x.dims[1] * x.dims[2] > std::numeric_limits<int32_t>::max()))
            return sdk::refuse(*plan,
                               "rms_norm: required %lld elements; supported: fewer than 2^30; missing: 64-bit counts",
                               static_cast<long long>(x.dims[0]));
        std::snprintf(plan->reason, sizeof plan->reason, "a block of threads a row");
        Cost cost;
        cost.macs_a_clock = 32;
        write_estimate(work, cost, *device, *plan);
    });
}

const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info*, tsr_device* device,
                          void** state) {
    return sdk::guarded([&] { *state = new State{*node, Kernel(*device, *build_of(self).rms_norm, "rms_norm")}; });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* enqueue(const tsr_kernel*, void* state, const tsr_launch* launch) {
    return sdk::guarded([&] {
        const State& prepared = *static_cast<State*>(state);
        const tsr_node& node = prepared.node;
        const tsr_tensor& x = *node.inputs[0];
        const tsr_tensor& y = *node.outputs[0];
        RmsNorm a{};
        a.x = operand_address(node, *launch, 0);
        a.weight = operand_address(node, *launch, 1);
        a.y = operand_address(node, *launch, 2);
        a.rows = rows_of_rank(x, *launch);
        set_strides(x, a.x_strides);
        set_strides(y, a.y_strides);
        a.inner[0] = x.rank > 2 ? static_cast<int32_t>(x.dims[1]) : 1;
        a.inner[1] = x.rank > 3 ? static_cast<int32_t>(x.dims[2]) : 1;
        a.n = static_cast<int32_t>(x.dims[0]);
        a.epsilon = static_cast<float>(sdk::float_attribute(node, "epsilon", 0));
        a.vectors = a.n % 4 == 0 && aligned(reinterpret_cast<uint64_t>(a.x), a.x_strides) &&
                    aligned(reinterpret_cast<uint64_t>(a.y), a.y_strides) &&
                    multiple(reinterpret_cast<uint64_t>(a.weight), 16);
        prepared.kernel.launch(
            launch->queue,
            {static_cast<uint32_t>(a.inner[0] * a.inner[1]), std::min(bound_of_rank(x, *launch), kMaximumGrid), 1},
            cuda_kernels::kRmsNormThreads, a);
    });
}

}  // namespace

void set_rms_norm(tsr_kernel& kernel) noexcept {
    kernel.name = "rms_norm.cuda";
    kernel.op = TSR_OP_RMS_NORM;
    kernel.plan = plan;
    kernel.prepare = prepare;
    kernel.release = release;
    kernel.enqueue = enqueue;
}

}  // namespace tessera::cuda_ops
