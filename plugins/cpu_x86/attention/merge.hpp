// Merges results over spans of tokens: each has elements, running maxima ("tops") and sums of its lanes.
#pragma once

#include "../kit.hpp"
#include "work.hpp"

#include <tessera/cpu/exponential.hpp>

namespace tessera::cpu_x86::attention {

template <class Isa, class Arithmetic>
struct Merge {
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kPanel = Arithmetic::kPanel;

    // Joins tops and sums of lanes (running[0 .. kPanel) tops, then sums) with those of what follows. correction: the
    // factor of the running results; share: that of the others.
    template <int V>
    static void lanes(float* running, const float* top, const float* sum, float* correction, float* share) noexcept {
        for (int v = 0; v < V; ++v) {
            const int i = v * kLanes;
            const auto old_top = Isa::load(running + i), new_top = Isa::load(top + i);
            const auto highest = Isa::maximum(old_top, new_top);
            const auto c = exp_not_positive<Isa>(Isa::subtract(old_top, highest));
            const auto e = exp_not_positive<Isa>(Isa::subtract(new_top, highest));
            Isa::store(correction + i, c);
            Isa::store(share + i, e);
            Isa::store(running + i, highest);
            float* total = running + kPanel + i;
            Isa::store(total, Isa::fma(Isa::load(sum + i), e, Isa::multiply(Isa::load(total), c)));
        }
    }

    // lanes() with tops and sums of the next span at `later`; then elements [begin, end) of `result`.
    static void part(float* running, float* result, const float* later, const HeadShape& shape, int vectors, int begin,
                     int end) noexcept {
        alignas(64) float correction[kPanel], share[kPanel];
        const float* tops = later + Panel<Arithmetic>::result_floats(shape);
        if (vectors == 2)
            lanes<2>(running, tops, tops + kPanel, correction, share);
        else
            lanes<1>(running, tops, tops + kPanel, correction, share);
        for (int d = begin; d < end; ++d) {
            for (int v = 0; v < vectors; ++v) {
                float* to = result + (int64_t{d} * vectors + v) * kLanes;
                const auto x = Isa::load(later + (int64_t{d} * vectors + v) * kLanes);
                Isa::store(to, Isa::fma(x, Isa::load(share + v * kLanes),
                                        Isa::multiply(Isa::load(to), Isa::load(correction + v * kLanes))));
            }
        }
    }

    // Joins `later`, the whole result of the next span, to `result`.
    static void whole(float* result, const float* later, const HeadShape& shape, int vectors) noexcept {
        part(result + Panel<Arithmetic>::result_floats(shape), result, later, shape, vectors, 0, shape.padded_value());
    }
};

}  // namespace tessera::cpu_x86::attention
