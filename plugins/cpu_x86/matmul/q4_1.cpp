#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ4_1 = Instantiate<cpu::WeightQ4_1>::table("q4_1", "q4_1_x8", 95e9);

}  // namespace tessera::cpu_x86
