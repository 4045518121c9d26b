#include "lanes.hpp"

#include <tessera/cpu/elementwise/pointwise.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>

#include <algorithm>
#include <cmath>

namespace tessera::x86 {

void silu_mul_8(float* hidden, const float* up) noexcept {
    using Isa = cpu::isa::Avx2Vectors;
    Isa::store(hidden, cpu::elementwise::silu_mul<Isa>(Isa::load(hidden), Isa::load(up)));
}

void glu_8(const cpu::Glu& of, float* hidden, const float* up) noexcept {
    using Isa = cpu::isa::Avx2Vectors;
    Isa::store(hidden, cpu::elementwise::glu<Isa>(of, Isa::load(hidden), Isa::load(up)));
}

void add_bias_8(float* to, const float* lanes, const float* bias, int64_t count) noexcept {
    using Isa = cpu::isa::Avx2Vectors;
    const int whole = static_cast<int>(std::min<int64_t>(count, Isa::kLanes));
    Isa::store(to, Isa::add(Isa::load(lanes), Isa::load_first(bias, whole)));
}

void add_scaled(float* to, const float* x, int64_t count, float factor) noexcept {
    for (int64_t i = 0; i < count; ++i) to[i] = std::fma(factor, x[i], to[i]);
}

}  // namespace tessera::x86
