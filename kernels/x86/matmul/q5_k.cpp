#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ5K = Instantiate<WeightQ5K>::table();

}  // namespace tessera::x86
