// Kernels for the host's CPU with AVX2, FMA and F16C.
#include "code.hpp"
#include "plugins/cpu_x86/tables.hpp"

namespace tessera::cpu_x86 {

namespace {

constexpr Vectors kVectors = {"AVX2", &kPanels, &kInt16Attention, &kFloatAttention, 1, 0, 1};

}  // namespace

const Vectors& vectors_of(const tsr_device_info*) noexcept {
    return kVectors;
}

}  // namespace tessera::cpu_x86

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return tessera::cpu_x86::plugin_table(host, "cpu_avx2", ".avx2");
}
