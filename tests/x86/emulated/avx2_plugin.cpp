// cpu_avx2 with AVX-VNNI, for processors without it.
#include "kernels/x86/tables.hpp"

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return tessera::x86::plugin_table(host, "cpu_avx2_emulated", ".avx2_emulated");
}
