// Arithmetic on the results of products, eight outputs at a time.
#pragma once

#include <cstdint>

namespace tessera::x86 {

// hidden[0 .. 8) = hidden / (1 + exp(-hidden)) * up, as the op silu_mul computes it.
void silu_mul_8(float* hidden, const float* up) noexcept;

// to[i] += factor * x[i], rounded once.
void add_scaled(float* to, const float* x, int64_t count, float factor) noexcept;

}  // namespace tessera::x86
