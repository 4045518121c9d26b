#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq2K = Instantiate<WeightIq2K>::table();
const WeightKernels kIq2Ks = Instantiate<WeightIq2Ks>::table();

}  // namespace tessera::x86
