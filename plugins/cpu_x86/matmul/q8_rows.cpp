#include "instantiate.hpp"

namespace tessera::cpu_x86 {

const WeightKernels kQ8KF16 = Instantiate<cpu::WeightQ8KF16>::table("q8_K_f16", "q8_K_f16_x8", 50e9);
const WeightKernels kQ8Row = Instantiate<cpu::WeightQ8Row>::table("q8_row", "q8_row_x8", 50e9);

}  // namespace tessera::cpu_x86
