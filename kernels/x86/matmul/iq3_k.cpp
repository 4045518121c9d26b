#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq3K = Instantiate<WeightIq3K>::table(63e9);
const WeightKernels kIq3Ks = Instantiate<WeightIq3Ks>::table(63e9);

}  // namespace tessera::x86
