#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ5K = Instantiate<cpu::WeightQ5K>::table("q5_K", "q5_K_x8", 90e9);

}  // namespace tessera::cpu_x86
