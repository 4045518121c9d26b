#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq1S = Instantiate<WeightIq1S>::table();
const WeightKernels kIq1M = Instantiate<WeightIq1M>::table();

}  // namespace tessera::x86
