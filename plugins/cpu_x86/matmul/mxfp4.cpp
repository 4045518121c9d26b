#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kMxfp4 = Instantiate<cpu::WeightMxfp4>::table(90e9);

}  // namespace tessera::cpu_x86
