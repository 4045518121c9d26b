// Kernels for the host's CPU with AVX2, FMA and F16C.
#include "attention/attention.hpp"
#include "elementwise/elementwise.hpp"
#include "layouts/layouts.hpp"
#include "matmul/matmul.hpp"
#include "moe/moe.hpp"

#include <tessera/plugin.h>

#include <vector>

namespace {

struct Tables {
    std::vector<const tsr_kernel*> kernels;
    tsr_plugin plugin{};

    Tables() {
        using namespace tessera::cpu_avx2;
        for (const auto list :
             {matmul_kernels(), ffn_kernels(), matmul_id_kernels(), attention_kernels(), elementwise_kernels()}) {
            kernels.insert(kernels.end(), list.begin(), list.end());
        }
        const auto layouts = weight_layouts();
        plugin.struct_size = sizeof plugin;
        plugin.abi_major = TSR_ABI_MAJOR;
        plugin.abi_minor = TSR_ABI_MINOR;
        plugin.name = "cpu_avx2";
        plugin.version = "0.1.0";
        plugin.kernels = kernels.data();
        plugin.kernel_count = static_cast<uint32_t>(kernels.size());
        plugin.layouts = layouts.data();
        plugin.layout_count = static_cast<uint32_t>(layouts.size());
    }
};

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    try {
        static const Tables tables;
        return &tables.plugin;
    } catch (...) {
        return nullptr;
    }
}
