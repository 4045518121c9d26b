#include "elementwise.hpp"

#include "../estimate.hpp"
#include "../kernel.hpp"
#include "../rates.hpp"
#include "rows.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/checks/routing.hpp>
#include <tessera/cpu/checks/storage.hpp>
#include <tessera/ops.h>

#include <array>
#include <memory>

namespace tessera::x86 {

namespace {

namespace elementwise = cpu::elementwise;

struct State {
    const tsr_node* node;
    std::unique_ptr<const elementwise::RopeTable> rope;
};

struct Op {
    const char* name;
    void (*check)(const tsr_node& node, tsr_kernel_plan& plan, cpu::Work& work) noexcept;
    void (*run)(const State& state, const tsr_run& run);
    const char* variant = "one row at a time";
};

void check_rope(const tsr_node& node, tsr_kernel_plan& plan, cpu::Work& work) noexcept {
    cpu::check_rope(node, plan, work);
    if (plan.supported && node.inputs[0]->dims[0] > 2 * elementwise::kMaxPairs) {
        sdk::refuse(plan, "rope: required heads of %lld; supported: up to %lld",
                    static_cast<long long>(node.inputs[0]->dims[0]),
                    static_cast<long long>(2 * elementwise::kMaxPairs));
    }
}

void check_moe_route(const tsr_node& node, tsr_kernel_plan& plan, cpu::Work& work) noexcept {
    cpu::check_moe_route(node, plan, work);
    if (plan.supported && node.inputs[0]->dims[0] > kMaxRoutedExperts) {
        sdk::refuse(plan, "moe_route: required %lld experts; supported: up to %lld",
                    static_cast<long long>(node.inputs[0]->dims[0]), static_cast<long long>(kMaxRoutedExperts));
    }
}

// A row's op, whose function does not need what was prepared.
template <void (*kRun)(const tsr_node& node, const tsr_run& run)>
void run_on(const State& state, const tsr_run& run) {
    kRun(*state.node, run);
}

constexpr std::array kOps{
    Op{TSR_OP_GET_ROWS, cpu::check_get_rows, run_on<run_get_rows>},
    Op{TSR_OP_RMS_NORM, cpu::check_rms_norm, run_on<run_rms_norm>},
    Op{TSR_OP_ROPE, check_rope, [](const State& s, const tsr_run& run) { run_rope(*s.node, *s.rope, run); }},
    Op{TSR_OP_ADD, cpu::check_add, run_on<run_add>},
    Op{TSR_OP_MUL, cpu::check_mul, run_on<run_mul>},
    Op{TSR_OP_SILU_MUL, cpu::check_silu_mul, run_on<run_silu_mul>},
    Op{TSR_OP_WEIGHTED_SUM, cpu::check_weighted_sum, run_on<run_weighted_sum>},
    Op{TSR_OP_HADAMARD, cpu::check_hadamard, run_on<run_hadamard>},
    Op{TSR_OP_MOE_ROUTE, check_moe_route, run_on<run_moe_route>},
    Op{TSR_OP_CONVERT, cpu::check_convert, run_on<run_convert>},
    Op{TSR_OP_TRANSPOSE, cpu::check_transpose, run_on<run_transpose>, "tiles of rows and columns"},
};

const Op& op_of(const tsr_kernel* self) noexcept {
    return *static_cast<const Op*>(self->context);
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    cpu::Work work;
    const Op& op = op_of(self);
    op.check(*node, *plan, work);
    if (!plan->supported) return nullptr;
    std::snprintf(plan->reason, sizeof plan->reason, "%s", op.variant);
    const Amount one{work.bytes_one_row, work.macs_one_row / kElementwiseRate};
    const Amount all{work.bytes_all_rows, work.macs_all_rows / kElementwiseRate};
    Estimate(device).write(*plan, 1, one, all, one, all);
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info*, tsr_device*,
                          void** state) {
    return sdk::guarded([&] {
        auto prepared = std::make_unique<State>(State{node, nullptr});
        if (std::string_view(op_of(self).name) == TSR_OP_ROPE) {
            prepared->rope = std::make_unique<const elementwise::RopeTable>(*node);
        }
        *state = prepared.release();
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* run) {
    return sdk::guarded([&] { op_of(self).run(*static_cast<const State*>(state), *run); });
}

constexpr auto kKernels = [] {
    std::array<tsr_kernel, kOps.size()> kernels{};
    for (size_t i = 0; i < kOps.size(); ++i) {
        kernels[i] = cpu_kernel(kOps[i].name, plan, prepare, release, run, &kOps[i]);
    }
    return kernels;
}();

constexpr auto kList = [] {
    std::array<const tsr_kernel*, kOps.size()> list{};
    for (size_t i = 0; i < kOps.size(); ++i) list[i] = &kKernels[i];
    return list;
}();

}  // namespace

std::span<const tsr_kernel* const> elementwise_kernels() noexcept {
    return kList;
}

}  // namespace tessera::x86
