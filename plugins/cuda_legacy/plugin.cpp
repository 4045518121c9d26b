// cuda_legacy: GPUs from Pascal to Turing. Products by dp4a where there is one (not on 6.0), sums in f32.
#include "plugins/cuda/ops.hpp"

#include <algorithm>

TESSERA_CUDA_MODULE(cuda_legacy__rms_norm);
TESSERA_CUDA_MODULE(cuda_legacy__matmul_q8_0);
TESSERA_CUDA_MODULE(cuda_legacy__matmul_float);
TESSERA_CUDA_MODULE(cuda_legacy__rowwise);
TESSERA_CUDA_MODULE(cuda_legacy__cache_write);
TESSERA_CUDA_MODULE(cuda_legacy__attention);
TESSERA_CUDA_MODULE(cuda_legacy__routing);
TESSERA_CUDA_MODULE(cuda_legacy__matmul_transposed);

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    // The manifest ends at 7.5. A build for newer cards made from compute_61 (90@61) serves to try this plugin on them.
    uint32_t maximum = 750;
    for (size_t i = 0; i < tessera_cuda_module_cuda_legacy__rms_norm.count; ++i)
        maximum = std::max(maximum, tessera_cuda_module_cuda_legacy__rms_norm.images[i].capability);
    return tessera::cuda_ops::plugin_table({"cuda_legacy",
                                            {600, maximum},
                                            &tessera_cuda_module_cuda_legacy__rms_norm,
                                            &tessera_cuda_module_cuda_legacy__matmul_q8_0,
                                            &tessera_cuda_module_cuda_legacy__matmul_float,
                                            &tessera_cuda_module_cuda_legacy__rowwise,
                                            &tessera_cuda_module_cuda_legacy__cache_write,
                                            &tessera_cuda_module_cuda_legacy__attention,
                                            &tessera_cuda_module_cuda_legacy__routing,
                                            &tessera_cuda_module_cuda_legacy__matmul_transposed});
}
