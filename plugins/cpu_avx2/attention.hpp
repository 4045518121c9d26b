#pragma once

#include "plugins/cpu_x86/vectors.hpp"

namespace tessera::cpu_x86 {

extern const AttentionCode kInt16Attention, kFloatAttention;

}  // namespace tessera::cpu_x86
