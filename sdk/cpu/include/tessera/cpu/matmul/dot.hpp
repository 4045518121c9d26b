// The one place where a weight's codes meet an activation's: every kernel adds up an output in this order, so an output
// does not depend on how many rows or workers there are, or on which kernel computed it.
#pragma once

#include <tessera/cpu/matmul/activations.hpp>

namespace tessera::cpu {

// sum + (one block of 32 elements of kLanes weight rows) . (column `row` of an activation block)
template <class Isa, class Format, int kRows>
[[gnu::always_inline]] inline typename Isa::Floats add_block(
    typename Isa::Floats sum, const typename Isa::Bytes (&codes)[8], const typename Isa::Floats* scale,
    const typename Isa::Floats* minimum, const ActivationBlock<kRows, Format::kGroups>& block, int row) noexcept {
    constexpr int kSteps = 8 / Format::kGroups;
    for (int g = 0; g < Format::kGroups; ++g) {
        typename Isa::Ints total;
        if constexpr (Format::kSigned) {
            total = Isa::zero();
            for (int s = g * kSteps; s < (g + 1) * kSteps; ++s) {
                total = Isa::dot_signed(total, codes[s], Isa::broadcast4(block.codes[s][row]));
            }
        } else {
            auto partial = Isa::start(block.start[g][row]);
            for (int s = g * kSteps; s < (g + 1) * kSteps; ++s) {
                partial = Isa::dot(partial, codes[s], Isa::broadcast4(block.codes[s][row]));
            }
            total = Isa::total(partial);
        }
        sum = Isa::fma(Isa::to_floats(total), Isa::multiply(scale[g], Isa::broadcast(&block.scale[row])), sum);
        if constexpr (Format::kHasMinimum) sum = Isa::fma(minimum[g], Isa::broadcast(&block.sum[g][row]), sum);
    }
    return sum;
}

}  // namespace tessera::cpu
