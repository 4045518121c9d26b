// Merges results over spans of tokens: each has elements, running maxima ("tops") and sums of its lanes.
#pragma once

#include "../kit.hpp"
#include "work.hpp"

#include <tessera/cpu/exponential.hpp>

namespace tessera::x86::attention {

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

    // lanes() with the tops and sums of what follows, `tops`; then elements [begin, end) of `result` and `later`.
    static void part(float* running, float* result, const float* tops, const float* later, const HeadShape& shape,
                     const Result& lies, int begin, int end) noexcept {
        alignas(64) float correction[kPanel], share[kPanel];
        const int vectors = lies.lanes > kLanes ? 2 : 1;
        if (vectors == 2)
            lanes<2>(running, tops, tops + kPanel, correction, share);
        else
            lanes<1>(running, tops, tops + kPanel, correction, share);
        if (lies.by_lane) {
            for (int lane = 0; lane < lies.lanes; ++lane) {
                const auto c = Isa::splat(correction[lane]), e = Isa::splat(share[lane]);
                const int64_t row = int64_t{lane} * shape.padded_value();
                for (int64_t d = row + begin; d < row + end; d += kLanes)
                    Isa::store(result + d, Isa::fma(Isa::load(later + d), e, Isa::multiply(Isa::load(result + d), c)));
            }
            return;
        }
        for (int d = begin; d < end; ++d) {
            for (int v = 0; v < vectors; ++v) {
                float* to = result + (int64_t{d} * vectors + v) * kLanes;
                const auto x = Isa::load(later + (int64_t{d} * vectors + v) * kLanes);
                Isa::store(to, Isa::fma(x, Isa::load(share + v * kLanes),
                                        Isa::multiply(Isa::load(to), Isa::load(correction + v * kLanes))));
            }
        }
    }

    // Joins `later`, the whole result of what follows, to `result`.
    static void whole(float* result, const float* later, const HeadShape& shape, const Result& lies) noexcept {
        const int64_t tops = Panel<Arithmetic>::result_floats(shape);
        part(result + tops, result, later + tops, later, shape, lies, 0, shape.padded_value());
    }
};

}  // namespace tessera::x86::attention
