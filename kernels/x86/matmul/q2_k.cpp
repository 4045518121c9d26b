#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ2K = Instantiate<WeightQ2K>::table();

}  // namespace tessera::x86
