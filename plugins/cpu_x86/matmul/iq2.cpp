#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq2Xxs = Instantiate<cpu::WeightIq2Xxs>::table("iq2_xxs", "iq2_xxs_x8", 55e9);
const WeightKernels kIq2Xs = Instantiate<cpu::WeightIq2Xs>::table("iq2_xs", "iq2_xs_x8", 50e9);
const WeightKernels kIq2S = Instantiate<cpu::WeightIq2S>::table("iq2_s", "iq2_s_x8", 50e9);

}  // namespace tessera::cpu_x86
