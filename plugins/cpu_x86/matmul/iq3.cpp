#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq3Xxs = Instantiate<cpu::WeightIq3Xxs>::table("iq3_xxs", "iq3_xxs_x8", 55e9);
const WeightKernels kIq3S = Instantiate<cpu::WeightIq3S>::table("iq3_s", "iq3_s_x8", 80e9);

}  // namespace tessera::cpu_x86
