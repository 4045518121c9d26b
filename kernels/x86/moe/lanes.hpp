// Arithmetic on the results of products, eight outputs at a time.
#pragma once

#include <tessera/cpu/glu.hpp>

#include <cstdint>

namespace tessera::x86 {

// hidden[0 .. 8) = hidden / (1 + exp(-hidden)) * up, as the op silu_mul computes it.
void silu_mul_8(float* hidden, const float* up) noexcept;

// hidden[0 .. 8) as the op glu computes it of hidden and up.
void glu_8(const cpu::Glu& of, float* hidden, const float* up) noexcept;

// to[0 .. 8) = lanes + bias, which has count elements left, of up to 8.
void add_bias_8(float* to, const float* lanes, const float* bias, int64_t count) noexcept;

// to[i] += factor * x[i], rounded once.
void add_scaled(float* to, const float* x, int64_t count, float factor) noexcept;

}  // namespace tessera::x86
