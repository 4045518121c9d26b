#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kMxfp4 = Instantiate<WeightMxfp4>::table(90e9);

}  // namespace tessera::cpu_x86
