/* The table of this plugin, and its list of architectures. */
#include "llama.h"

#include <tessera/plugin.h>

#include <string.h>

static const tsr_architecture* const all[] = {&example_llama};
static const tsr_architectures architectures = {sizeof(tsr_architectures), 1, NULL, all};

static const void* get_extension(const tsr_plugin* self, const char* tag) {
    (void)self;
    return strcmp(tag, TSR_ARCHITECTURES) == 0 ? &architectures : NULL;
}

static const tsr_plugin plugin = {
    .struct_size = sizeof(tsr_plugin),
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example_architecture_c",
    .version = "1.0.0",
    .get_extension = get_extension,
};

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return host->abi_major == TSR_ABI_MAJOR ? &plugin : NULL;
}
