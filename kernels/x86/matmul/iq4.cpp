#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kIq4Nl = Instantiate<WeightIq4Nl>::table();
const WeightKernels kIq4Xs = Instantiate<WeightIq4Xs>::table();

}  // namespace tessera::x86
