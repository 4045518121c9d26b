#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq4Nl = Instantiate<cpu::WeightIq4Nl>::table("iq4_nl", "iq4_nl_x8", 60e9);
const WeightKernels kIq4Xs = Instantiate<cpu::WeightIq4Xs>::table("iq4_xs", "iq4_xs_x8", 60e9);

}  // namespace tessera::cpu_x86
