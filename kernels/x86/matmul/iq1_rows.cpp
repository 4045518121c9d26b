#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::x86 {

const WeightKernels kIq1SRow = Instantiate<WeightIq1SRow>::table();
const WeightKernels kIq1MRow = Instantiate<WeightIq1MRow>::table();

}  // namespace tessera::x86
