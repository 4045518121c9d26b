#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ5K = Instantiate<WeightQ5K>::table(90e9);

}  // namespace tessera::cpu_x86
