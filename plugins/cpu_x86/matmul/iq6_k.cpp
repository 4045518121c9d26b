#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq6K = Instantiate<WeightIq6K>::table(55e9);

}  // namespace tessera::cpu_x86
