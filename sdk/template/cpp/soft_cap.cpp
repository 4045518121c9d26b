// An operator of this plugin's own, with the kernel that computes it.
//
// soft_cap: x f32 [n, ...] -> the same shape: cap * tanh(x / cap), which keeps values between -cap and cap and leaves
// small ones nearly as they are. In place. Attribute: cap (f), above 0. Source: Gemma 2 (arXiv 2408.00118), section 2.
#include "kernels.hpp"
#include "rows.hpp"

#include <tessera/cpp/status.hpp>

#include <cmath>

namespace example {
namespace {

namespace sdk = tessera::sdk;

constexpr const char* kName = "soft_cap";

const tsr_status* infer(const tsr_operator*, const tsr_node* node, tsr_tensor* const* outputs) {
    return sdk::guarded([&] {
        if (node->input_count != 1 || node->inputs[0]->type != TSR_TYPE_F32) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT, "soft_cap: expected one f32 input");
        }
        if (!(sdk::float_attribute(*node, "cap", 0) > 0)) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT, "soft_cap: expected an attribute 'cap' above 0");
        }
        const tsr_tensor& x = *node->inputs[0];
        tsr_tensor& out = *outputs[0];
        out = x;
        out.role = TSR_ROLE_ACTIVATION;
        out.offset = 0;
        out.name = nullptr;
        // The input may be a strided view; the output is dense.
        int64_t stride = sizeof(float);
        for (uint32_t d = 0; d < TSR_MAX_RANK; ++d) {
            out.strides[d] = stride;
            stride *= out.dims[d];
        }
    });
}

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    if (!accept_rows(*node, *plan)) return nullptr;
    plan->supported = 1;
    estimate(*node, *device, *plan);
    return nullptr;
}

struct State {
    const tsr_node* node;
    float cap;
};

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device*, void** state) {
    return sdk::guarded([&] { *state = new State{node, static_cast<float>(sdk::float_attribute(*node, "cap", 0))}; });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* run(const tsr_kernel*, void* state, const tsr_run* run) {
    const auto& [node, cap] = *static_cast<const State*>(state);
    const Rows rows = share_of(actual_rows(*node, *run), *run);
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        const float* x = row_of(*node, *run, 0, row);
        float* out = row_of(*node, *run, 1, row);
        for (int64_t i = 0; i < node->inputs[0]->dims[0]; ++i) out[i] = cap * std::tanh(x[i] / cap);
    }
    return nullptr;
}

}  // namespace

const tsr_operator kSoftCapOperator = {
    .struct_size = sizeof(tsr_operator),
    .version = 1,
    .next = nullptr,
    .context = nullptr,
    .name = kName,
    .infer = infer,
    .lowerings = nullptr,  // a primitive: computed by the kernel below
    .lowering_count = 0,
    .output_count = 1,
};

const tsr_kernel kSoftCapKernel = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = 1,
    .next = nullptr,
    .context = nullptr,
    .name = "soft_cap.example",
    .op = kName,
    .device_kind = "cpu",
    .interop = nullptr,
    .priority = 0,
    .device_abi = 0,
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .run = run,
    .enqueue = nullptr,
};

}  // namespace example
