#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ3K = Instantiate<WeightQ3K>::table();

}  // namespace tessera::x86
