#include "attention.hpp"

#include "plugins/cpu_x86/attention/code.hpp"

#include <tessera/cpu/attention/float_arithmetic.hpp>
#include <tessera/cpu/attention/int16_arithmetic.hpp>
#include <tessera/cpu/isa/avx512_vectors.hpp>

namespace tessera::cpu_x86 {

using Isa = cpu::isa::Avx512Vectors;
using Vnni = cpu::isa::Avx512VnniVectors;
const AttentionCode kWordAttention = attention_code<Isa, cpu::attention::Int16Arithmetic<Isa>>(80e9);
const AttentionCode kVnniWordAttention = attention_code<Vnni, cpu::attention::Int16Arithmetic<Vnni>>(120e9);
const AttentionCode kFloatAttention = attention_code<Isa, cpu::attention::FloatArithmetic<Isa>>(60e9);

}  // namespace tessera::cpu_x86
