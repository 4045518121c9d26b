#include "code.hpp"
#include "kernels/x86/attention/byte_arithmetic.hpp"
#include "kernels/x86/attention/code.hpp"
#include "kernels/x86/attention/float_arithmetic.hpp"
#include "kernels/x86/attention/int16_arithmetic.hpp"

#include <tessera/cpu/isa/avx512_vectors.hpp>

namespace tessera::x86 {

// Measured on a Xeon with AMX at 2.5 GHz (what it does while vectors of 512 bits are in use): 60 % of what the
// multipliers can do; said for 3.1 GHz. Bytes are faster by more than their rate says: at their real rate, plans would
// compute prompts without keys of each head, which takes longer.
using Isa = cpu::isa::Avx512Vectors;
using Vnni = cpu::isa::Avx512VnniVectors;
const AttentionCode kInt16Attention = attention_code<Isa, attention::Int16Arithmetic<Isa>>(74e9);
const AttentionCode kVnniInt16Attention = attention_code<Vnni, attention::Int16Arithmetic<Vnni>>(118e9);
const AttentionCode kByteAttention = attention_code<Vnni, attention::ByteArithmetic<Vnni>>(130e9);
const AttentionCode kFloatAttention = attention_code<Isa, attention::FloatArithmetic<Isa>>(68e9);

}  // namespace tessera::x86
