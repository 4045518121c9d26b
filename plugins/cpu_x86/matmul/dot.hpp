// The one place where codes of weights are multiplied with codes of activations: every kernel adds up an output in this
// order, so an output does not depend on how many rows or workers there are, or on which kernel computed it.
//
// A block of 32 elements with one scale and no minimum is added by one fused multiply-add. Else its parts are added to
// each other first, so that blocks wait for one addition and not for a chain of fused ones.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::cpu_x86 {

template <class Format>
inline constexpr bool kAddedAtOnce = Format::kGroups == 1 && !Format::kHasMinimum;

// Format::visit, for formats whose rows have a scale with that of each lane's row.
template <class Format, class Floats, class Sink>
[[gnu::always_inline]] inline void visit_unit(const typename Format::Unit& unit, [[maybe_unused]] Floats row_scale,
                                              Sink&& sink) noexcept {
    if constexpr (kPrefixBytes<typename Format::Block> != 0)
        Format::visit(unit, row_scale, sink);
    else
        Format::visit(unit, sink);
}

// The value of a block so far: group `g` of its kGroups, whose integer sum is `total`, joins `part` (not read for group
// 0). block: an ActivationBlock, or what has its scales and sums.
template <class Isa, class Format, class Block>
[[gnu::always_inline]] inline typename Isa::Floats add_group(typename Isa::Floats part, typename Isa::Floats total,
                                                             typename Isa::Floats scale, typename Isa::Floats minimum,
                                                             const Block& block, int g, int row) noexcept {
    const auto both = Isa::multiply(scale, Isa::broadcast(&block.scale[row]));
    part = g == 0 ? Isa::multiply(total, both) : Isa::fma(total, both, part);
    if constexpr (Format::kHasMinimum) part = Isa::fma(minimum, Isa::broadcast(&block.sum[g][row]), part);
    return part;
}

// sum + (one block of 32 elements of kLanes weight rows) . (column `row` of an activation block)
template <class Isa, class Format, int kRows>
[[gnu::always_inline]] inline typename Isa::Floats add_block(
    typename Isa::Floats sum, const typename Isa::Bytes (&codes)[8], const typename Isa::Floats* scale,
    const typename Isa::Floats* minimum, const ActivationBlock<kRows, Format::kGroups>& block, int row) noexcept {
    constexpr int kSteps = 8 / Format::kGroups;
    auto part = sum;
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
        if constexpr (kAddedAtOnce<Format>) {
            return Isa::fma(Isa::to_floats(total), Isa::multiply(scale[0], Isa::broadcast(&block.scale[row])), sum);
        }
        part = add_group<Isa, Format>(part, Isa::to_floats(total), scale[g], minimum[g], block, g, row);
    }
    return Isa::add(sum, part);
}

}  // namespace tessera::cpu_x86
