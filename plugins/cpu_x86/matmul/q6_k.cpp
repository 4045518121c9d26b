#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ6K = Instantiate<WeightQ6K>::table(90e9);

}  // namespace tessera::cpu_x86
