#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq2K = Instantiate<WeightIq2K>::table(80e9);
const WeightKernels kIq2Ks = Instantiate<WeightIq2Ks>::table(80e9);

}  // namespace tessera::x86
