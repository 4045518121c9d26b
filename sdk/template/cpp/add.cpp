// A kernel that replaces a built-in one: the op is Tessera's (tessera/ops.h), the priority puts this kernel first. It
// leaves the sum of a tensor and one row to others; what a kernel refuses, the next one is asked.
#include "kernels.hpp"
#include "rows.hpp"

#include <tessera/ops.h>

namespace example {
namespace {

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    if (!accept_rows(*node, *plan)) return nullptr;
    plan->supported = 1;
    estimate(*node, *device, *plan);
    return nullptr;
}

// There is nothing to prepare but to remember the node, which outlives the state.
const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device*, void** state) {
    *state = const_cast<tsr_node*>(node);
    return nullptr;
}

void release(const tsr_kernel*, void*) {}

const tsr_status* run(const tsr_kernel*, void* state, const tsr_run* run) {
    const tsr_node& node = *static_cast<const tsr_node*>(state);
    const Rows rows = share_of(actual_rows(node, *run), *run);
    const int64_t elements = node.inputs[0]->dims[0];
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float* a = row_of(node, *run, 0, row);
        const float* b = row_of(node, *run, 1, row);
        float* out = row_of(node, *run, 2, row);  // may be a
        for (int64_t i = 0; i < elements; ++i) out[i] = a[i] + b[i];
    }
    return nullptr;
}

}  // namespace

const tsr_kernel kAddKernel = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = 1,
    .next = nullptr,
    .context = nullptr,
    .name = "add.example",
    .op = TSR_OP_ADD,
    .device_kind = "cpu",
    .interop = nullptr,
    .priority = 10,
    .device_abi = 0,
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .run = run,
    .enqueue = nullptr,
};

}  // namespace example
