#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ3K = Instantiate<WeightQ3K>::table(90e9);

}  // namespace tessera::cpu_x86
