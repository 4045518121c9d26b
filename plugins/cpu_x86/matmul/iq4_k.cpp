#include "instantiate.hpp"
#include "packed_levels.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq4K = Instantiate<cpu::WeightIq4K>::table("iq4_k", "iq4_k_x8", 50e9);
const WeightKernels kIq4Ks = Instantiate<cpu::WeightIq4Ks>::table("iq4_ks", "iq4_ks_x8", 55e9);

}  // namespace tessera::cpu_x86
