// The kernels that both CUDA plugins offer: one table, made for the modules and the cards of a plugin.
#pragma once

#include <tessera/cuda/images.hpp>
#include <tessera/cuda/provider.hpp>
#include <tessera/kernel.h>
#include <tessera/plugin.h>

namespace tessera::cuda_ops {

// X(module): modules of kernels, one for each file of kernels/*.cu; CMakeLists.txt compiles them for each plugin.
#define TESSERA_CUDA_OPS_MODULES(X) \
    X(rms_norm)                     \
    X(quantise)                     \
    X(few_rows_small)               \
    X(few_rows_k)                   \
    X(few_rows_levels)              \
    X(few_rows_codebook)            \
    X(matmul_float)                 \
    X(rowwise)                      \
    X(cache_write)                  \
    X(attention)                    \
    X(project)                      \
    X(routing)                      \
    X(decode)                       \
    X(product_parts)                \
    X(products_small)               \
    X(products_k)                   \
    X(products_levels)              \
    X(products_codebook)            \
    X(products_float)               \
    X(ffn_small)                    \
    X(ffn_k)                        \
    X(ffn_levels)                   \
    X(ffn_codebook)

// What a plugin was built with. Lives until the process ends.
struct Build {
    const char* name;  // of the plugin
    cuda::CardRange cards;
#define TESSERA_CUDA_OPS_FIELD(module) const cuda::Module* module;
    TESSERA_CUDA_OPS_MODULES(TESSERA_CUDA_OPS_FIELD)
#undef TESSERA_CUDA_OPS_FIELD
    // Attention on tensor cores; nullptr in a plugin without. The wide one is for cards with 160 KB of shared memory a
    // block.
    const cuda::Module *flash_mla = nullptr, *flash_mla_wide = nullptr, *flash_heads = nullptr, *project_f16 = nullptr;
    // Products of many rows for cards with tensor cores other than GeForce cards (tiles_staged.hpp), by family; nullptr
    // in a plugin without.
    const cuda::Module *staged_small = nullptr, *staged_k = nullptr, *staged_levels = nullptr,
                       *staged_codebook = nullptr, *staged_float = nullptr;
    // The same attention in f32, for many rows at once; nullptr in a plugin with tensor cores.
    const cuda::Module *flash_mla_f32 = nullptr, *flash_heads_f32 = nullptr;
};

// The plugin's table; the first call makes it, for one build a library. nullptr if there is no memory.
const tsr_plugin* plugin_table(const Build& build) noexcept;

// Of both plugins' tables: tsr_plugin.get_extension.
const void* get_extension(const tsr_plugin* self, const char* tag) noexcept;

// The kernel's context is the build.
inline const Build& build_of(const tsr_kernel* kernel) noexcept {
    return *static_cast<const Build*>(kernel->context);
}

// X(name): the kernels, each by its function set_NAME, which fills in what differs between kernels: op, name, plan,
// prepare, release, enqueue.
#define TESSERA_CUDA_KERNELS(X) \
    X(rms_norm)                 \
    X(matmul)                   \
    X(add)                      \
    X(mul)                      \
    X(silu_mul)                 \
    X(glu)                      \
    X(add_id)                   \
    X(weighted_sum)             \
    X(rope)                     \
    X(cache_write)              \
    X(flash_attention)          \
    X(tiled_attention)          \
    X(moe_route)                \
    X(get_rows)                 \
    X(matmul_id)                \
    X(matmul_transposed)        \
    X(matmul_group)             \
    X(gated_ffn)                \
    X(moe_ffn)                  \
    X(convert)                  \
    X(transpose)                \
    X(hadamard)                 \
    X(scale)                    \
    X(scale_by_position)        \
    X(sigmoid_mul)

#define TESSERA_CUDA_DECLARE(name) void set_##name(tsr_kernel& kernel) noexcept;
TESSERA_CUDA_KERNELS(TESSERA_CUDA_DECLARE)
#undef TESSERA_CUDA_DECLARE

// Refuses in `plan`, as every kernel does first, a card that the plugin does not own, or for which the module has no
// image; returns whether it did.
bool refuse_card(const Build& build, const cuda::Module& module, const tsr_device_info& device, const char* op,
                 tsr_kernel_plan& plan);

}  // namespace tessera::cuda_ops
