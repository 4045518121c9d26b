// Kernels for the host's CPU with AVX-512 (F, BW, DQ, VL); faster ones where it has VNNI.
#include "kernels/x86/tables.hpp"

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return tessera::x86::plugin_table(host, "cpu_avx512", ".avx512");
}
