// What a processor with AVX2, FMA and F16C runs, and what one with AVX-VNNI besides.
#include "code.hpp"

namespace tessera::x86 {

namespace {

constexpr Vectors kBase = {"AVX2", &kPanels, &kInt16Attention, &kFloatAttention, nullptr, Processor::kAvx2};
constexpr Vectors kVnni = {"AVX2 with VNNI", &kVnniPanels,    &kVnniInt16Attention,
                           &kFloatAttention, &kByteAttention, Processor::kAvx2Vnni};
constexpr Vectors kBesideAmx = {"AVX2 with VNNI", &kVnniPanels,    &kVnniInt16Attention,
                                &kFloatAttention, &kByteAttention, Processor::kAvx2BesideAmx};

}  // namespace

const Vectors& vectors_of(const tsr_device_info* device) noexcept {
    if (!has_flag(device, "avx_vnni")) return kBase;
    return has_flag(device, "amx_int8") ? kBesideAmx : kVnni;
}

}  // namespace tessera::x86
