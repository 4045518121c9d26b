#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq4K = Instantiate<WeightIq4K>::table();
const WeightKernels kIq4Ks = Instantiate<WeightIq4Ks>::table();

}  // namespace tessera::x86
