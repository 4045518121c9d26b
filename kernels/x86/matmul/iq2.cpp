#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq2Xxs = Instantiate<WeightIq2Xxs>::table(63e9);
const WeightKernels kIq2Xs = Instantiate<WeightIq2Xs>::table(63e9);
const WeightKernels kIq2S = Instantiate<WeightIq2S>::table(63e9);

}  // namespace tessera::x86
