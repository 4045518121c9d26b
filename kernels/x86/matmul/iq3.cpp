#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq3Xxs = Instantiate<WeightIq3Xxs>::table();
const WeightKernels kIq3S = Instantiate<WeightIq3S>::table();

}  // namespace tessera::x86
