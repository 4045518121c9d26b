#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ5_0 = Instantiate<cpu::WeightQ5_0>::table("q5_0", "q5_0_x8", 95e9);
const WeightKernels kQ5_1 = Instantiate<cpu::WeightQ5_1>::table("q5_1", "q5_1_x8", 90e9);

}  // namespace tessera::cpu_x86
