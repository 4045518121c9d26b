// What is compiled for AVX-512, behind tables.
#pragma once

#include "kernels/x86/vectors.hpp"

namespace tessera::x86 {

extern const AttentionCode kInt16Attention, kVnniInt16Attention, kByteAttention, kFloatAttention;
extern const PanelTable kPanels, kVnniPanels, kAmxPanels;
extern const TileUnit kTiles;

}  // namespace tessera::x86
