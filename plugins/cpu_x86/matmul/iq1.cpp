#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq1S = Instantiate<cpu::WeightIq1S>::table("iq1_s", "iq1_s_x8", 80e9);
const WeightKernels kIq1M = Instantiate<cpu::WeightIq1M>::table("iq1_m", "iq1_m_x8", 70e9);

}  // namespace tessera::cpu_x86
