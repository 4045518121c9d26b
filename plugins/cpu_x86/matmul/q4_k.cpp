#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ4K = Instantiate<WeightQ4K>::table(90e9);

}  // namespace tessera::cpu_x86
