#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ6K = Instantiate<WeightQ6K>::table();

}  // namespace tessera::x86
