#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq2Xxs = Instantiate<WeightIq2Xxs>::table();
const WeightKernels kIq2Xs = Instantiate<WeightIq2Xs>::table();
const WeightKernels kIq2S = Instantiate<WeightIq2S>::table();

}  // namespace tessera::x86
