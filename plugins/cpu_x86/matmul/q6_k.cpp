#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ6K = Instantiate<cpu::WeightQ6K>::table("q6_K", "q6_K_x8", 80e9);

}  // namespace tessera::cpu_x86
