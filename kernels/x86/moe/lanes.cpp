#include "lanes.hpp"

#include <tessera/cpu/elementwise/pointwise.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>

#include <cmath>

namespace tessera::x86 {

void silu_mul_8(float* hidden, const float* up) noexcept {
    using Isa = cpu::isa::Avx2Vectors;
    Isa::store(hidden, cpu::elementwise::silu_mul<Isa>(Isa::load(hidden), Isa::load(up)));
}

void add_scaled(float* to, const float* x, int64_t count, float factor) noexcept {
    for (int64_t i = 0; i < count; ++i) to[i] = std::fma(factor, x[i], to[i]);
}

}  // namespace tessera::x86
