// What a processor with AVX-512 (F, BW, DQ, VL) runs, and what one with VNNI runs.
#include "code.hpp"

#include <string_view>

namespace tessera::cpu_x86 {

namespace {

constexpr Vectors kBase = {"AVX-512", &kPanels, &kInt16Attention, &kFloatAttention};
constexpr Vectors kVnni = {"AVX-512 with VNNI", &kVnniPanels, &kVnniInt16Attention, &kFloatAttention};

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
