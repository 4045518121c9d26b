#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ4_0 = Instantiate<WeightQ4_0>::table();

}  // namespace tessera::x86
