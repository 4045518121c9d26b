#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ4_1 = Instantiate<WeightQ4_1>::table();

}  // namespace tessera::x86
