#include "tables.hpp"

#include "attention/attention.hpp"
#include "elementwise/elementwise.hpp"
#include "layouts/byte_pages.hpp"
#include "layouts/int16_pages.hpp"
#include "layouts/layouts.hpp"
#include "matmul/matmul.hpp"
#include "moe/moe.hpp"

#include <list>
#include <string>
#include <vector>

namespace tessera::x86 {

namespace {

struct Tables {
    std::list<std::string> names;
    std::list<tsr_kernel> kernels;
    std::vector<const tsr_kernel*> list;
    std::vector<const tsr_layout*> layouts;
    tsr_plugin plugin{};

    Tables(const char* name, const char* suffix) {
        for (const auto some :
             {matmul_kernels(), ffn_kernels(), matmul_id_kernels(), attention_kernels(), elementwise_kernels()}) {
            for (const tsr_kernel* kernel : some) {
                tsr_kernel& named = kernels.emplace_back(*kernel);
                named.name = names.emplace_back(std::string(kernel->op) + suffix).c_str();
                list.push_back(&named);
            }
        }
        layouts.assign(weight_layouts().begin(), weight_layouts().end());
        for (const tsr_layout* layout : int16_layouts(attention_lanes(nullptr))) layouts.push_back(layout);
        layouts.push_back(&byte_layout());
        plugin.struct_size = sizeof plugin;
        plugin.abi_major = TSR_ABI_MAJOR;
        plugin.abi_minor = TSR_ABI_MINOR;
        plugin.name = name;
        plugin.version = "0.1.0";
        plugin.kernels = list.data();
        plugin.kernel_count = static_cast<uint32_t>(list.size());
        plugin.layouts = layouts.data();
        plugin.layout_count = static_cast<uint32_t>(layouts.size());
    }
};

}  // namespace

const tsr_plugin* plugin_table(const tsr_host* host, const char* name, const char* suffix) noexcept {
    // Built for minor version 0, which every host supports.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    try {
        static const Tables tables(name, suffix);
        return &tables.plugin;
    } catch (...) {
        return nullptr;
    }
}

}  // namespace tessera::x86
