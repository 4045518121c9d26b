#include "kernels/x86/matmul/plain.hpp"

#include <tessera/cpu/isa/avx2.hpp>

namespace tessera::x86 {

using Isa = cpu::isa::Avx2;
const WeightKernels kF32 = Plain<Isa, TSR_TYPE_F32>::table();
const WeightKernels kF16 = Plain<Isa, TSR_TYPE_F16>::table();
const WeightKernels kBf16 = Plain<Isa, TSR_TYPE_BF16>::table();
const ColumnKernels kColumns = column_table<Isa>();

}  // namespace tessera::x86
