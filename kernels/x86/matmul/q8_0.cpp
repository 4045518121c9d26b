#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ8_0 = Instantiate<WeightQ8_0>::table();

}  // namespace tessera::x86
