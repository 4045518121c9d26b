// cuda_legacy: GPUs from Pascal to Turing. Products by dp4a where there is one (not on 6.0), sums in f32.
#include "kernels/cuda/ops.hpp"

#include <algorithm>

#define TESSERA_DECLARE(module) TESSERA_CUDA_MODULE(cuda_legacy__##module);
TESSERA_CUDA_OPS_MODULES(TESSERA_DECLARE)
TESSERA_DECLARE(flash_mla_f32);
TESSERA_DECLARE(flash_heads_f32);

#define TESSERA_ADDRESS(module) &tessera_cuda_module_cuda_legacy__##module
#define TESSERA_POINTER(module) TESSERA_ADDRESS(module),

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    // The manifest ends at 7.5. A build for a newer card made from compute_61 (90@61) serves to try this plugin on it,
    // and on no other one: an 8.6 has no code there.
    uint32_t newest = 0;
    for (size_t i = 0; i < tessera_cuda_module_cuda_legacy__rms_norm.count; ++i)
        newest = std::max(newest, tessera_cuda_module_cuda_legacy__rms_norm.images[i].capability);
    tessera::cuda_ops::Build build{
        "cuda_legacy", {600, 750, newest >= 800 ? newest : 0}, TESSERA_CUDA_OPS_MODULES(TESSERA_POINTER)};
    build.flash_mla_f32 = TESSERA_ADDRESS(flash_mla_f32);
    build.flash_heads_f32 = TESSERA_ADDRESS(flash_heads_f32);
    return tessera::cuda_ops::plugin_table(build);
}
