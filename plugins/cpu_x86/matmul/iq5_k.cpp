#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq5K = Instantiate<cpu::WeightIq5K>::table("iq5_k", "iq5_k_x8", 50e9);
const WeightKernels kIq5Ks = Instantiate<cpu::WeightIq5Ks>::table("iq5_ks", "iq5_ks_x8", 55e9);

}  // namespace tessera::cpu_x86
