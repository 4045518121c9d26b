#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq3Xxs = Instantiate<WeightIq3Xxs>::table(63e9);
const WeightKernels kIq3S = Instantiate<WeightIq3S>::table(80e9);

}  // namespace tessera::x86
