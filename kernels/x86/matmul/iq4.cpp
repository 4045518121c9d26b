#include "instantiate.hpp"

namespace tessera::x86 {

const WeightKernels kIq4Nl = Instantiate<WeightIq4Nl>::table(60e9);
const WeightKernels kIq4Xs = Instantiate<WeightIq4Xs>::table(60e9);

}  // namespace tessera::x86
