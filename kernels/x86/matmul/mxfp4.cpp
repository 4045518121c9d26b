#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kMxfp4 = Instantiate<WeightMxfp4>::table(90e9);

}  // namespace tessera::x86
