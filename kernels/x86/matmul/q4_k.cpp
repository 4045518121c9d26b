#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ4K = Instantiate<WeightQ4K>::table(90e9);

}  // namespace tessera::x86
