// The names of the CPU kit, which the kernels of this folder use unqualified.
#pragma once

namespace tessera::cpu {}

namespace tessera::x86 {

using namespace cpu;

}  // namespace tessera::x86
