#include "code.hpp"
#include "kernels/x86/attention/byte_arithmetic.hpp"
#include "kernels/x86/attention/code.hpp"
#include "kernels/x86/attention/float_arithmetic.hpp"
#include "kernels/x86/attention/int16_arithmetic.hpp"

#include <tessera/cpu/isa/avx2_vectors.hpp>

namespace tessera::x86 {

using Isa = cpu::isa::Avx2Vectors;
using Vnni = cpu::isa::Avx2VnniVectors;
const AttentionCode kInt16Attention = attention_code<Isa, attention::Int16Arithmetic<Isa>>();
const AttentionCode kVnniInt16Attention = attention_code<Vnni, attention::Int16Arithmetic<Vnni>>();
const AttentionCode kByteAttention = attention_code<Vnni, attention::ByteArithmetic<Vnni>>();
const AttentionCode kFloatAttention = attention_code<Isa, attention::FloatArithmetic<Isa>>();

}  // namespace tessera::x86
