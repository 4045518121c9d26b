#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ4K = Instantiate<WeightQ4K>::table();

}  // namespace tessera::x86
