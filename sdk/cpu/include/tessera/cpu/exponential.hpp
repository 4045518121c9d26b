// exp of numbers that are not positive, and weights from scores.
#pragma once

namespace tessera::cpu {

// Relative error below 3e-7; exactly 0 for x < -87, and exactly 1 for 0. 2^n times the Taylor polynomial of 2^f, f in
// [-1/2, 1/2].
template <class Isa>
inline typename Isa::Floats exp_not_positive(typename Isa::Floats x) noexcept {
    const auto lowest = Isa::splat(-87.0f);
    const auto t = Isa::multiply(Isa::maximum(x, lowest), Isa::splat(1.44269504f));
    const auto n = Isa::round(t);
    const auto f = Isa::subtract(t, n);
    auto p = Isa::splat(1.5403530e-4f);
    p = Isa::fma(p, f, Isa::splat(1.3333558e-3f));
    p = Isa::fma(p, f, Isa::splat(9.6181291e-3f));
    p = Isa::fma(p, f, Isa::splat(5.5504109e-2f));
    p = Isa::fma(p, f, Isa::splat(2.4022651e-1f));
    p = Isa::fma(p, f, Isa::splat(6.9314718e-1f));
    p = Isa::fma(p, f, Isa::splat(1.0f));
    return Isa::where_not_less(x, lowest, Isa::multiply(p, Isa::power_of_two(n)));
}

// One vector of lanes: x[t * stride], t < tokens, becomes exp(x - top); top and sum are those of each lane.
template <class Isa>
inline void softmax_f32(float* x, int stride, int tokens, float* top, float* sum) noexcept {
    auto highest = Isa::load(x);
    for (int t = 1; t < tokens; ++t) highest = Isa::maximum(Isa::load(x + t * stride), highest);
    // A score that is no number makes the sum none either, by way of `none`.
    auto total = Isa::zero(), none = Isa::zero();
    for (int t = 0; t < tokens; ++t) {
        const auto score = Isa::load(x + t * stride);
        const auto e = exp_not_positive<Isa>(Isa::subtract(score, highest));
        total = Isa::add(total, e);
        none = Isa::fma(score, Isa::zero(), none);
        Isa::store(x + t * stride, e);
    }
    Isa::store(top, highest);
    Isa::store(sum, Isa::add(total, none));
}

}  // namespace tessera::cpu
