// The host side: a kernel for the built-in op add, which goes before the built-in one by its priority, and the table.
#include "add.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cuda/launch.hpp>
#include <tessera/ops.h>
#include <tessera/plugin.h>

#include <algorithm>

TESSERA_CUDA_MODULE(example_cuda__add);

namespace example {
namespace {

namespace sdk = tessera::sdk;
namespace cuda = tessera::cuda;

static_assert(sizeof(RowRange) == sizeof(tsr_range));
constexpr uint32_t kMaximumGrid = 65535;

int64_t inner_rows(const tsr_tensor& tensor) {
    return (tensor.rank > 2 ? tensor.dims[1] : 1) * (tensor.rank > 3 ? tensor.dims[2] : 1);
}

// Pure: the card may be described by a file, and not be here.
const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    if (!cuda::find_image(tessera_cuda_module_example_cuda__add, device->compute_capability)) {
        const auto why = cuda::missing_image(tessera_cuda_module_example_cuda__add, device->compute_capability);
        sdk::refuse(*plan, "add: %s", why.c_str());
        return nullptr;
    }
    const tsr_tensor& first = *node->inputs[0];
    for (uint32_t i = 0; i < 3; ++i) {
        const tsr_tensor& tensor = sdk::operand(*node, i);
        bool fits = tensor.type == TSR_TYPE_F32 && sdk::canonical(tensor) && tensor.rank == first.rank &&
                    tensor.rank > 1 && tensor.strides[0] == static_cast<int64_t>(sizeof(float));
        for (uint32_t d = 0; fits && d < first.rank; ++d)
            fits = tensor.dims[d] == first.dims[d] && tensor.dims[d] < (1 << 30);
        if (!fits || inner_rows(tensor) >= (1 << 30)) {
            sdk::refuse(*plan, "operand %u: required an f32 tensor of the first one's shape with dense rows", i);
            return nullptr;
        }
    }
    // Bytes over the memory's bandwidth, and what a launch takes.
    const double row_bytes = 3.0 * sizeof(float) * static_cast<double>(first.dims[0] * inner_rows(first));
    const double bandwidth = device->memory_bandwidth > 0 ? device->memory_bandwidth : 1e11, launch = 3e-6;
    plan->supported = 1;
    plan->seconds_one_row = launch + row_bytes / bandwidth;
    plan->seconds_all_rows = launch + row_bytes * static_cast<double>(first.dims[first.rank - 1]) / bandwidth;
    plan->bytes_one_row = row_bytes;
    plan->bytes_all_rows = row_bytes * static_cast<double>(first.dims[first.rank - 1]);
    std::snprintf(plan->reason, sizeof plan->reason, "an example");
    return nullptr;
}

struct State {
    const tsr_node& node;
    cuda::Kernel kernel;
};

// Loads the module and finds the function, which enqueue must not do: a graph may be recorded then.
const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info*, tsr_device* device,
                          void** state) {
    return sdk::guarded([&] {
        *state = new State{*node, cuda::Kernel(*device, tessera_cuda_module_example_cuda__add, "add")};
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* enqueue(const tsr_kernel*, void* prepared, const tsr_launch* launch) {
    return sdk::guarded([&] {
        const State& state = *static_cast<const State*>(prepared);
        const tsr_tensor& first = *state.node.inputs[0];
        const auto all = static_cast<int32_t>(first.dims[first.rank - 1]);
        Add args{};
        char* addresses[3];
        for (uint32_t i = 0; i < 3; ++i) {
            const tsr_tensor& tensor = sdk::operand(state.node, i);
            addresses[i] = static_cast<char*>(launch->data[i]) + tensor.offset;
            args.strides[i][0] = tensor.rank > 2 ? tensor.strides[1] : 0;
            args.strides[i][1] = tensor.rank > 3 ? tensor.strides[2] : 0;
            args.strides[i][2] = tensor.strides[tensor.rank - 1];
        }
        args.a = addresses[0];
        args.b = addresses[1];
        args.y = addresses[2];
        args.all = all;
        args.n = static_cast<int32_t>(first.dims[0]);
        args.inner[0] = first.rank > 2 ? static_cast<int32_t>(first.dims[1]) : 1;
        args.inner[1] = first.rank > 3 ? static_cast<int32_t>(first.dims[2]) : 1;
        int32_t bound = all;
        if (first.range != TSR_RANGE_FIXED) {
            args.rows = reinterpret_cast<const RowRange*>(launch->ranges + first.range);
            bound = std::clamp(launch->row_bounds[first.range], 0, all);
        }
        if (bound == 0) return;
        state.kernel.launch(
            launch->queue,
            {static_cast<uint32_t>(inner_rows(first)), std::min(static_cast<uint32_t>(bound), kMaximumGrid), 1},
            kThreads, args);
    });
}

const tsr_kernel kAdd = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = 1,
    .next = nullptr,
    .context = nullptr,
    .name = "add.example_cuda",
    .op = TSR_OP_ADD,
    .device_kind = cuda::kKind,
    .interop = cuda::kInterop,
    .priority = 10,
    .device_abi = TSR_DEVICE_ABI,
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .run = nullptr,
    .enqueue = enqueue,
};
const tsr_kernel* const kKernels[] = {&kAdd};

const tsr_plugin kPlugin = {
    .struct_size = sizeof(tsr_plugin),
    .reserved = 0,
    .next = nullptr,
    .context = nullptr,
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example_cuda",
    .version = "1.0.0",
    .providers = nullptr,
    .kernels = kKernels,
    .layouts = nullptr,
    .operators = nullptr,
    .lowerings = nullptr,
    .provider_count = 0,
    .kernel_count = 1,
    .layout_count = 0,
    .operator_count = 0,
    .lowering_count = 0,
    .reserved_count = 0,
    .initialize = nullptr,
    .get_extension = nullptr,
};

}  // namespace
}  // namespace example

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return host->abi_major == TSR_ABI_MAJOR ? &example::kPlugin : nullptr;
}
