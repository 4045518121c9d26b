#pragma once

#include <tessera/kernel.h>

namespace tessera::cpu_x86 {

extern const tsr_kernel kCacheWrite;

}  // namespace tessera::cpu_x86
