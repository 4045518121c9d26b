#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ6_0 = Instantiate<WeightQ6_0>::table(70e9);

}  // namespace tessera::x86
