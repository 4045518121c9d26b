#include "instantiate.hpp"
#include "packed_codebook.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kIq1SRow = Instantiate<cpu::WeightIq1SRow>::table("iq1_s_row", "iq1_s_row_x8", 80e9);
const WeightKernels kIq1MRow = Instantiate<cpu::WeightIq1MRow>::table("iq1_m_row", "iq1_m_row_x8", 70e9);

}  // namespace tessera::cpu_x86
