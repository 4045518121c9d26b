// cuda_ampere: GPUs from Ampere on.
#include "plugins/cuda/ops.hpp"

TESSERA_CUDA_MODULE(cuda_ampere__rms_norm);
TESSERA_CUDA_MODULE(cuda_ampere__matmul_q8_0);
TESSERA_CUDA_MODULE(cuda_ampere__matmul_float);
TESSERA_CUDA_MODULE(cuda_ampere__rowwise);
TESSERA_CUDA_MODULE(cuda_ampere__cache_write);
TESSERA_CUDA_MODULE(cuda_ampere__attention);
TESSERA_CUDA_MODULE(cuda_ampere__routing);
TESSERA_CUDA_MODULE(cuda_ampere__matmul_transposed);

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    return tessera::cuda_ops::plugin_table({"cuda_ampere",
                                            {800, 9999},
                                            &tessera_cuda_module_cuda_ampere__rms_norm,
                                            &tessera_cuda_module_cuda_ampere__matmul_q8_0,
                                            &tessera_cuda_module_cuda_ampere__matmul_float,
                                            &tessera_cuda_module_cuda_ampere__rowwise,
                                            &tessera_cuda_module_cuda_ampere__cache_write,
                                            &tessera_cuda_module_cuda_ampere__attention,
                                            &tessera_cuda_module_cuda_ampere__routing,
                                            &tessera_cuda_module_cuda_ampere__matmul_transposed});
}
