#include "elementwise.hpp"

#include "../estimate.hpp"
#include "../kernel.hpp"
#include "../rates.hpp"
#include "rows.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/row_ops.hpp>

#include <list>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::x86 {

namespace {

struct State {
    const tsr_node* node;
    std::shared_ptr<const void> prepared;
};

// The context of a kernel.
struct CheckedOp {
    const RowOp* row;
    cpu::CheckFunction check;
};

const CheckedOp& checked_op(const tsr_kernel* self) noexcept {
    return *static_cast<const CheckedOp*>(self->context);
}

const RowOp& op_of(const tsr_kernel* self) noexcept {
    return *checked_op(self).row;
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    const RowOp& op = op_of(self);
    cpu::Work work;
    checked_op(self).check(*node, *plan, work);
    if (plan->supported && node->inputs[0]->dims[0] > op.longest) {
        sdk::refuse(*plan, "%s: required rows of %lld; supported: up to %lld", op.op,
                    static_cast<long long>(node->inputs[0]->dims[0]), static_cast<long long>(op.longest));
    }
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
        const RowOp& op = op_of(self);
        *state = new State{node, op.prepare ? op.prepare(*node) : nullptr};
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* run) {
    return sdk::guarded([&] {
        const State& of = *static_cast<const State*>(state);
        op_of(self).run({*of.node, of.prepared.get()}, *run);
    });
}

struct Kernels {
    std::list<CheckedOp> ops;
    std::vector<tsr_kernel> kernels;
    std::vector<const tsr_kernel*> list;

    Kernels() {
        for (const RowOp* row : {kGetRows, kPointwise, kHadamard, kRouting, kStorage}) {
            for (; row->op; ++row) {
                const CheckedOp& op = ops.emplace_back(row, cpu::find_row_check(row->op));
                if (!op.check) throw std::logic_error(std::string("no check of ") + row->op);
                kernels.push_back(cpu_kernel(row->op, plan, prepare, release, run, &op));
            }
        }
        for (const tsr_kernel& kernel : kernels) list.push_back(&kernel);
    }
};

}  // namespace

std::span<const tsr_kernel* const> elementwise_kernels() {
    static const Kernels kKernels;
    return kKernels.list;
}

}  // namespace tessera::x86
