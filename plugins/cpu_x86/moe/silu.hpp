// The gate of a feed-forward network, eight outputs at a time.
#pragma once

#include <tessera/cpu/elementwise/pointwise.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>

namespace tessera::cpu_x86 {

// hidden[0 .. 8) = hidden / (1 + exp(-hidden)) * up, as the op silu_mul computes it.
inline void silu_mul_8(float* hidden, const float* up) noexcept {
    using Isa = cpu::isa::Avx2Vectors;
    Isa::store(hidden, cpu::elementwise::silu_mul<Isa>(Isa::load(hidden), Isa::load(up)));
}

}  // namespace tessera::cpu_x86
