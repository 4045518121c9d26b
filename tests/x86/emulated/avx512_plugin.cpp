// cpu_avx512 for processors without AVX-512.
#include "kernels/x86/tables.hpp"

#include <tessera/cpu/isa/amx_instructions.hpp>

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return tessera::x86::plugin_table(host, "cpu_avx512_emulated", ".avx512_emulated");
}

// For tests of what the kernels do with tile registers.
extern "C" TSR_EXPORT void* tessera_emulated_tiles() {
    return &tessera::tests::emulated::tile_system();
}
