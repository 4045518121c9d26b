// Prefetches that are spread over the steps of a register tile, one every dozen cycles: in one burst they fill the
// queue of outstanding reads, and the tile's own loads wait behind them.
#pragma once

#include "../kit.hpp"
#include "unrolled.hpp"

#include <algorithm>

namespace tessera::x86::attention {

// Cache lines that lie one after the other.
struct Lines {
    const char* at;
    int count;
};

// Of a tile that asks for nothing.
struct NoAsking {
    static constexpr bool kAsks = false;
    Lines lines(int /*count*/) const noexcept { return {nullptr, 0}; }
};

// next(count): up to `count` lines that a tile asks for.
template <class Next>
class Asking {
  public:
    static constexpr bool kAsks = true;
    explicit Asking(Next next) noexcept : next_(next) {}
    Lines lines(int count) noexcept { return next_(count); }

  private:
    Next next_;
};

// A tile of `Sums` vectors of products asks for one line every so many steps.
template <int Sums>
inline constexpr int kStepsPerLine = Sums >= 16 ? 1 : 2;

// step() `steps` times; `lines` has no more than steps / kStepsPerLine.
template <class Isa, bool kAsks, int Sums, class Step>
[[gnu::always_inline]] inline void take_steps(int steps, Lines lines, Step&& step) noexcept {
    if constexpr (kAsks) {
        steps -= lines.count * kStepsPerLine<Sums>;
        for (; lines.count > 0; --lines.count, lines.at += 64) {
            unrolled<kStepsPerLine<Sums>>([&](auto) { step(); });
            Isa::prefetch_far(lines.at);
        }
    }
    for (; steps > 0; --steps) step();
}

}  // namespace tessera::x86::attention
