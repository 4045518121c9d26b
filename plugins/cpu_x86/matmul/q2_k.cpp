#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ2K = Instantiate<WeightQ2K>::table(75e9);

}  // namespace tessera::cpu_x86
