// What a processor with AVX2, FMA and F16C runs, and what one with AVX-VNNI besides.
#include "code.hpp"

namespace tessera::x86 {

namespace {

// Speeds: bench_matmul on a Zen 5, whose own vectors of 512 bits were not used. VNNI does products of signed codes,
// which take AVX2 twice as long, as fast as any.
constexpr Vectors kBase = {"AVX2", &kPanels, &kInt16Attention, &kFloatAttention, nullptr, 1, 0, 1};
constexpr Vectors kVnni = {
    "AVX2 with VNNI", &kVnniPanels, &kVnniInt16Attention, &kFloatAttention, &kByteAttention, 1.1, 115e9, 1};

}  // namespace

const Vectors& vectors_of(const tsr_device_info* device) noexcept {
    return has_flag(device, "avx_vnni") ? kVnni : kBase;
}

}  // namespace tessera::x86
