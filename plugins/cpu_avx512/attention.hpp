#pragma once

#include "plugins/cpu_x86/vectors.hpp"

namespace tessera::cpu_x86 {

extern const AttentionCode kWordAttention, kVnniWordAttention, kFloatAttention;

}  // namespace tessera::cpu_x86
