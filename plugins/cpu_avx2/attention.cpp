#include "code.hpp"
#include "kernels/x86/attention/byte_arithmetic.hpp"
#include "kernels/x86/attention/code.hpp"
#include "kernels/x86/attention/float_arithmetic.hpp"
#include "kernels/x86/attention/int16_arithmetic.hpp"

#include <tessera/cpu/isa/avx2_vectors.hpp>

namespace tessera::x86 {

// Measured on Zen 3 at 3.1 GHz: about 60 % of what the multipliers can do. With VNNI: against AVX2 on Zen 5. The
// rate of bytes is too low on purpose (plugins/cpu_avx512/attention.cpp).
using Isa = cpu::isa::Avx2Vectors;
using Vnni = cpu::isa::Avx2VnniVectors;
const AttentionCode kInt16Attention = attention_code<Isa, attention::Int16Arithmetic<Isa>>(60e9);
const AttentionCode kVnniInt16Attention = attention_code<Vnni, attention::Int16Arithmetic<Vnni>>(69e9);
const AttentionCode kByteAttention = attention_code<Vnni, attention::ByteArithmetic<Vnni>>(76e9);
const AttentionCode kFloatAttention = attention_code<Isa, attention::FloatArithmetic<Isa>>(35e9);

}  // namespace tessera::x86
