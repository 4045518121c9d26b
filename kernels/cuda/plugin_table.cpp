#include "ops.hpp"

#include <tessera/cpp/node.hpp>

#include <exception>
#include <iterator>
#include <string>

namespace tessera::cuda_ops {
namespace {

using SetKernel = void (*)(tsr_kernel&) noexcept;
constexpr SetKernel kKernels[] = {
#define TESSERA_CUDA_ROW(name) set_##name,
    TESSERA_CUDA_KERNELS(TESSERA_CUDA_ROW)
#undef TESSERA_CUDA_ROW
};
constexpr uint32_t kKernelCount = std::size(kKernels);

struct Table {
    explicit Table(const Build& made_for) : build(made_for), provider(cuda::make_provider(build.cards)) {
        for (uint32_t i = 0; i < kKernelCount; ++i) {
            kernels[i] = {};
            kernels[i].struct_size = sizeof(tsr_kernel);
            kernels[i].op_version = 1;
            kernels[i].context = &build;
            kernels[i].device_kind = cuda::kKind;
            kernels[i].interop = cuda::kInterop;
            kernels[i].device_abi = TSR_DEVICE_ABI;
            kKernels[i](kernels[i]);
            kernel_list[i] = &kernels[i];
        }
        provider_list[0] = &provider;
        plugin.struct_size = sizeof plugin;
        plugin.abi_major = TSR_ABI_MAJOR;
        plugin.abi_minor = TSR_ABI_MINOR;
        plugin.name = build.name;
        plugin.version = "0.1.0";
        plugin.providers = provider_list;
        plugin.provider_count = 1;
        plugin.kernels = kernel_list;
        plugin.kernel_count = kKernelCount;
        plugin.get_extension = get_extension;
    }

    Build build;
    tsr_device_provider provider;
    tsr_kernel kernels[kKernelCount];
    const tsr_kernel* kernel_list[kKernelCount];
    const tsr_device_provider* provider_list[1];
    tsr_plugin plugin{};
};

}  // namespace

const tsr_plugin* plugin_table(const Build& build) noexcept {
    try {
        static const auto* table = new Table(build);
        return &table->plugin;
    } catch (const std::exception&) {
        return nullptr;
    }
}

bool refuse_card(const Build& build, const cuda::Module& module, const tsr_device_info& device, const char* op,
                 tsr_kernel_plan& plan) {
    const uint32_t capability = device.compute_capability;
    if (!build.cards.contains(capability)) {
        sdk::refuse(plan,
                    "%s: required compute capability %u.%u; supported: %u.%u to %u.%u; missing: other generations", op,
                    capability / 100, capability / 10 % 10, build.cards.minimum / 100, build.cards.minimum / 10 % 10,
                    build.cards.maximum / 100, build.cards.maximum / 10 % 10);
        return true;
    }
    if (!cuda::find_image(module, capability)) {
        sdk::refuse(plan, "%s: required compute capability %u.%u; missing: %s", op, capability / 100,
                    capability / 10 % 10, cuda::missing_image(module, capability).c_str());
        return true;
    }
    return false;
}

}  // namespace tessera::cuda_ops
