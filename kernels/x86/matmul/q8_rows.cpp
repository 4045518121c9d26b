#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kQ8KF16 = Instantiate<WeightQ8KF16>::table();
const WeightKernels kQ8Row = Instantiate<WeightQ8Row>::table();

}  // namespace tessera::x86
