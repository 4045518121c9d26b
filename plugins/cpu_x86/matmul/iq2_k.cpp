#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq2K = Instantiate<cpu::WeightIq2K>::table("iq2_k", "iq2_k_x8", 70e9);
const WeightKernels kIq2Ks = Instantiate<cpu::WeightIq2Ks>::table("iq2_ks", "iq2_ks_x8", 70e9);

}  // namespace tessera::cpu_x86
