// What is compiled for AVX2, behind tables.
#pragma once

#include "plugins/cpu_x86/vectors.hpp"

namespace tessera::cpu_x86 {

extern const AttentionCode kInt16Attention, kVnniInt16Attention, kByteAttention, kFloatAttention;
extern const PanelTable kPanels, kVnniPanels;

}  // namespace tessera::cpu_x86
