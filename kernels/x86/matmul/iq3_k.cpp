#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq3K = Instantiate<WeightIq3K>::table();
const WeightKernels kIq3Ks = Instantiate<WeightIq3Ks>::table();

}  // namespace tessera::x86
