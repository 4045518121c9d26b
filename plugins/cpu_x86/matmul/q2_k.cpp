#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ2K = Instantiate<cpu::WeightQ2K>::table("q2_K", "q2_K_x8", 75e9);

}  // namespace tessera::cpu_x86
