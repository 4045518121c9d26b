#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ3K = Instantiate<WeightQ3K>::table(90e9);

}  // namespace tessera::x86
