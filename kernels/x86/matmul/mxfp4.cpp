#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kMxfp4 = Instantiate<WeightMxfp4>::table();

}  // namespace tessera::x86
