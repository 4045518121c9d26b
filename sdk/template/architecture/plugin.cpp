// The table of this plugin, and its list of architectures.
#include "qwen3.hpp"

#include <tessera/plugin.h>

#include <string_view>

namespace example {
namespace {

const tsr_architecture* const kAll[] = {&kQwen3};
const tsr_architectures kArchitectures = {sizeof(tsr_architectures), 1, nullptr, kAll};

const void* get_extension(const tsr_plugin*, const char* tag) {
    return std::string_view(tag) == TSR_ARCHITECTURES ? &kArchitectures : nullptr;
}

const tsr_plugin kPlugin = {
    .struct_size = sizeof(tsr_plugin),
    .reserved = 0,
    .next = nullptr,
    .context = nullptr,
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example_architecture",
    .version = "1.0.0",
    .providers = nullptr,
    .kernels = nullptr,
    .layouts = nullptr,
    .operators = nullptr,
    .lowerings = nullptr,
    .provider_count = 0,
    .kernel_count = 0,
    .layout_count = 0,
    .operator_count = 0,
    .lowering_count = 0,
    .reserved_count = 0,
    .initialize = nullptr,
    .get_extension = get_extension,
};

}  // namespace
}  // namespace example

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return host->abi_major == TSR_ABI_MAJOR ? &example::kPlugin : nullptr;
}
