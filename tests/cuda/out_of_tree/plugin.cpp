#include <tessera/cuda/images.hpp>
#include <tessera/plugin.h>

TESSERA_CUDA_MODULE(out_of_tree__scale);

// Brings nothing; there is no table if the kernel was not embedded.
extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host*) {
    static tsr_plugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.abi_major = TSR_ABI_MAJOR;
    plugin.abi_minor = TSR_ABI_MINOR;
    plugin.name = "out_of_tree";
    plugin.version = "1.0";
    return tessera_cuda_module_out_of_tree__scale.count > 0 ? &plugin : nullptr;
}
