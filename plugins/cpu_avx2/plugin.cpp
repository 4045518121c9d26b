// Kernels for the host's CPU with AVX2, FMA and F16C; faster ones where it has AVX-VNNI.
#include "kernels/x86/tables.hpp"

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return tessera::x86::plugin_table(host, "cpu_avx2", ".avx2");
}
