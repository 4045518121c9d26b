#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq5K = Instantiate<WeightIq5K>::table();
const WeightKernels kIq5Ks = Instantiate<WeightIq5Ks>::table();

}  // namespace tessera::x86
