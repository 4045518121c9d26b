// cuda_ampere: GPUs from Ampere on.
#include "kernels/cuda/ops.hpp"

#define TESSERA_DECLARE(module) TESSERA_CUDA_MODULE(cuda_ampere__##module);
TESSERA_CUDA_OPS_MODULES(TESSERA_DECLARE)

TESSERA_DECLARE(flash_mla);
TESSERA_DECLARE(flash_mla_wide);
TESSERA_DECLARE(flash_heads);
TESSERA_DECLARE(project_f16);
TESSERA_DECLARE(staged_small);
TESSERA_DECLARE(staged_k);
TESSERA_DECLARE(staged_levels);
TESSERA_DECLARE(staged_codebook);
TESSERA_DECLARE(staged_float);

#define TESSERA_POINTER(module) &tessera_cuda_module_cuda_ampere__##module,

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    return tessera::cuda_ops::plugin_table(
        {"cuda_ampere",
         {800, 9999},
         TESSERA_CUDA_OPS_MODULES(TESSERA_POINTER) TESSERA_POINTER(flash_mla) TESSERA_POINTER(flash_mla_wide)
             TESSERA_POINTER(flash_heads) TESSERA_POINTER(project_f16) TESSERA_POINTER(staged_small)
                 TESSERA_POINTER(staged_k) TESSERA_POINTER(staged_levels) TESSERA_POINTER(staged_codebook)
                     TESSERA_POINTER(staged_float)});
}
