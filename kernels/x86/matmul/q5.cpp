#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ5_0 = Instantiate<WeightQ5_0>::table(95e9);
const WeightKernels kQ5_1 = Instantiate<WeightQ5_1>::table(90e9);

}  // namespace tessera::x86
