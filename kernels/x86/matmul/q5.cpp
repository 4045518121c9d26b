#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ5_0 = Instantiate<WeightQ5_0>::table();
const WeightKernels kQ5_1 = Instantiate<WeightQ5_1>::table();

}  // namespace tessera::x86
