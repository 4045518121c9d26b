// What a processor with AVX-512 (F, BW, DQ, VL) runs, and what one with VNNI runs.
#include "code.hpp"

#include <string_view>

namespace tessera::cpu_x86 {

namespace {

// Speeds: bench_matmul on a Xeon, at 2.5 GHz, against AVX2 on Zen 3 at 3.1. VNNI does
// products of signed codes, which take AVX2 twice as long, as fast as any.
constexpr Vectors kBase = {"AVX-512", &kPanels, &kInt16Attention, &kFloatAttention, 1, 0};
constexpr Vectors kVnni = {"AVX-512 with VNNI", &kVnniPanels, &kVnniInt16Attention, &kFloatAttention, 1.55, 120e9};

bool has_flag(const tsr_device_info* device, std::string_view flag) noexcept {
    if (!device || !device->cpu_flags) return false;
    for (const char* const* f = device->cpu_flags; *f; ++f) {
        if (flag == *f) return true;
    }
    return false;
}

}  // namespace

const Vectors& vectors_of(const tsr_device_info* device) noexcept {
    return has_flag(device, "avx512_vnni") ? kVnni : kBase;
}

}  // namespace tessera::cpu_x86
