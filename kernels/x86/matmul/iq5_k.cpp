#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq5K = Instantiate<WeightIq5K>::table(55e9);
const WeightKernels kIq5Ks = Instantiate<WeightIq5Ks>::table(55e9);

}  // namespace tessera::x86
