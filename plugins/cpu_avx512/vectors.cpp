// What a processor with AVX-512 (F, BW, DQ, VL) runs, what one with VNNI, and what one with AMX-INT8 besides.
#include "code.hpp"

namespace tessera::x86 {

namespace {

constexpr Vectors kBase = {"AVX-512", &kPanels, &kInt16Attention, &kFloatAttention, nullptr, Processor::kAvx512};
constexpr Vectors kVnni = {"AVX-512 with VNNI", &kVnniPanels,    &kVnniInt16Attention,
                           &kFloatAttention,    &kByteAttention, Processor::kAvx512Vnni};
constexpr Vectors kAmx = {
    "AVX-512 with VNNI and AMX", &kAmxPanels, &kVnniInt16Attention, &kFloatAttention, &kByteAttention, Processor::kAmx};

}  // namespace

const Vectors& vectors_of(const tsr_device_info* device) noexcept {
    if (!has_flag(device, "avx512_vnni")) return kBase;
    return has_flag(device, "amx_int8") ? kAmx : kVnni;
}

}  // namespace tessera::x86
