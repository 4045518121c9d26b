#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ6_0 = Instantiate<WeightQ6_0>::table();

}  // namespace tessera::x86
