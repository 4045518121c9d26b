#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kMxfp4 = Instantiate<cpu::WeightMxfp4>::table("mxfp4", "mxfp4_x8", 90e9);

}  // namespace tessera::cpu_x86
