// What a processor with AVX-512 (F, BW, DQ, VL) runs, what one with VNNI, and what one with AMX-INT8 besides.
#include "code.hpp"

namespace tessera::x86 {

namespace {

// Speeds: bench_matmul on a Xeon, at 2.5 GHz, against AVX2 on Zen 3 at 3.1. VNNI does
// products of signed codes, which take AVX2 twice as long, as fast as any.
constexpr Vectors kBase = {"AVX-512", &kPanels, &kInt16Attention, &kFloatAttention, nullptr, 1, 0, 1};
constexpr Vectors kVnni = {
    "AVX-512 with VNNI", &kVnniPanels, &kVnniInt16Attention, &kFloatAttention, &kByteAttention, 1.55, 120e9, 1};
// 1.3: an estimate that no machine has confirmed (README.md). The arithmetic around the tile
// instructions leaves room for 1.5 to 1.9; they may not hide behind it entirely, and may lower the clock.
constexpr Vectors kAmx = {"AVX-512 with VNNI and AMX",
                          &kAmxPanels,
                          &kVnniInt16Attention,
                          &kFloatAttention,
                          &kByteAttention,
                          1.55,
                          120e9,
                          1.3};

}  // namespace

const Vectors& vectors_of(const tsr_device_info* device) noexcept {
    if (!has_flag(device, "avx512_vnni")) return kBase;
    return has_flag(device, "amx_int8") ? kAmx : kVnni;
}

}  // namespace tessera::x86
