#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::x86 {

const WeightKernels kIq6K = Instantiate<WeightIq6K>::table();

}  // namespace tessera::x86
