#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq3K = Instantiate<cpu::WeightIq3K>::table("iq3_k", "iq3_k_x8", 50e9);
const WeightKernels kIq3Ks = Instantiate<cpu::WeightIq3Ks>::table("iq3_ks", "iq3_ks_x8", 55e9);

}  // namespace tessera::cpu_x86
