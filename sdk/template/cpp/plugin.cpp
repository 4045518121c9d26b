// The table of this plugin, and the one function that hands it out.
#include "kernels.hpp"

#include <tessera/plugin.h>

#include <algorithm>
#include <cstdio>

namespace example {

void estimate(const tsr_node& node, const tsr_device_info& device, tsr_kernel_plan& plan) noexcept {
    const tsr_tensor& x = *node.inputs[0];
    double elements_a_row = 1, rows = 1;
    for (uint32_t d = 0; d + 1 < x.rank; ++d) elements_a_row *= static_cast<double>(x.dims[d]);
    rows = static_cast<double>(x.dims[x.rank - 1]);
    const double speed = kElementsASecond * std::max(device.threads, 1u);
    plan.seconds_one_row = elements_a_row / speed;
    plan.seconds_all_rows = elements_a_row * rows / speed;
    std::snprintf(plan.reason, sizeof plan.reason, "plain C++");
}

namespace {

const tsr_kernel* const kKernels[] = {&kAddKernel, &kSoftCapKernel};
const tsr_operator* const kOperators[] = {&kSoftCapOperator};

const tsr_plugin kPlugin = {
    .struct_size = sizeof(tsr_plugin),
    .reserved = 0,
    .next = nullptr,
    .context = nullptr,
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example",
    .version = "1.0.0",
    .providers = nullptr,
    .kernels = kKernels,
    .layouts = nullptr,
    .operators = kOperators,
    .lowerings = nullptr,
    .provider_count = 0,
    .kernel_count = 2,
    .layout_count = 0,
    .operator_count = 1,
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
