#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ5K = Instantiate<WeightQ5K>::table(90e9);

}  // namespace tessera::x86
