// The one place where codes of weights are multiplied with codes of activations: every kernel adds up an output in this
// order, so an output does not depend on how many rows or workers there are, or on which kernel computed it.
//
// A block of 32 elements without minimum is added by one fused multiply-add: two scales are whole numbers there, and
// its sum before that is an integer. With minima its parts are added to each other first, so that blocks wait for one
// addition and not for a chain of fused ones.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"

#include <tessera/cpu/formats.hpp>

#include <type_traits>

namespace tessera::x86 {

// Whether scales are whole numbers, each twice as the two int16 of a lane, under a factor; else they are floats.
template <class Format>
inline constexpr bool kWholeScales = Format::kGroups == 2 && !Format::kHasMinimum;
template <class Isa, class Format>
using ScaleOf = std::conditional_t<kWholeScales<Format>, typename Isa::Ints, typename Isa::Floats>;

// Whether sums of signed codes are scaled at every step, which costs nothing where a step ends with a multiplication
// by 1.
template <class Isa, class Format>
inline constexpr bool kScaledSteps = Isa::kShortSums&& Format::kSigned&& kWholeScales<Format>;

// Format::visit, for formats whose rows have a scale with that of each lane's row.
template <class Format, class Floats, class Sink>
[[gnu::always_inline]] inline void visit_unit(const typename Format::Unit& unit, [[maybe_unused]] Floats row_scale,
                                              Sink&& sink) noexcept {
    if constexpr (kPrefixBytes<typename Format::Block> != 0)
        Format::visit(unit, row_scale, sink);
    else
        Format::visit(unit, sink);
}

// The integer sum of a block so far: part `p`, which `sums` sums, joins `total` (not read for part 0), times a whole
// scale. With minima it is the part's alone.
template <class Isa, class Format, class Scale>
[[gnu::always_inline]] inline typename Isa::Ints add_part(typename Isa::Ints total, typename Isa::Sums sums,
                                                          [[maybe_unused]] Scale scale, int p) noexcept {
    typename Isa::Ints part;
    if constexpr (kWholeScales<Format>)
        part = Isa::scaled_total(sums, scale);
    else
        part = Isa::total(sums);
    return p == 0 || Format::kHasMinimum ? part : Isa::add_lanes(total, part);
}

// The value of a block with minima so far: group `g` of its kGroups, whose integer sum is `total`, joins `part` (not
// read for group 0). block: an ActivationBlock, or what has its scales and sums.
template <class Isa, class Block>
[[gnu::always_inline]] inline typename Isa::Floats add_group(typename Isa::Floats part, typename Isa::Floats total,
                                                             typename Isa::Floats scale, typename Isa::Floats minimum,
                                                             const Block& block, int g, int row) noexcept {
    const auto both = Isa::multiply(scale, Isa::broadcast(&block.scale[row]));
    part = g == 0 ? Isa::multiply(total, both) : Isa::fma(total, both, part);
    return Isa::fma(minimum, Isa::broadcast(&block.sum[g][row]), part);
}

// sum + total * scale of the weights * that of the activations: of a block without minimum.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Floats add_at_once(typename Isa::Floats sum, typename Isa::Ints total,
                                                               typename Isa::Floats scale,
                                                               const float& activation_scale) noexcept {
    return Isa::fma(Isa::to_floats(total), Isa::multiply(scale, Isa::broadcast(&activation_scale)), sum);
}

// sum + (one block of 32 elements of kLanes weight rows) . (column `row` of an activation block)
template <class Isa, class Format, int kRows>
[[gnu::always_inline]] inline typename Isa::Floats add_block(typename Isa::Floats sum,
                                                             const typename Isa::Bytes (&codes)[8],
                                                             const ScaleOf<Isa, Format>* scale,
                                                             const typename Isa::Floats* minimum_or_factor,
                                                             const ActivationBlock<kRows, Format::kDivision>& block,
                                                             int row) noexcept {
    constexpr int kSteps = 8 / Format::kParts, kGroupParts = Format::kParts / Format::kGroups;
    [[maybe_unused]] auto part_sum = sum;
    auto total = Isa::zero();
    for (int p = 0; p < Format::kParts; ++p) {
        const int g = p / kGroupParts;
        const auto activation = [&](int s) { return Isa::broadcast4(block.codes[s][row]); };
        if constexpr (Format::kSigned) {
            for (int s = p * kSteps; s < (p + 1) * kSteps; ++s) {
                if constexpr (kScaledSteps<Isa, Format>)
                    total = Isa::dot_signed_scaled(total, codes[s], activation(s), scale[g]);
                else
                    total = Isa::dot_signed(total, codes[s], activation(s));
            }
        } else {
            auto sums = Isa::start(block.start[p][row]);
            for (int s = p * kSteps; s < (p + 1) * kSteps; ++s) sums = Isa::dot(sums, codes[s], activation(s));
            total = add_part<Isa, Format>(total, sums, scale[g], p);
        }
        if constexpr (Format::kHasMinimum)
            part_sum = add_group<Isa>(part_sum, Isa::to_floats(total), scale[g], minimum_or_factor[g], block, g, row);
    }
    if constexpr (Format::kHasMinimum)
        return Isa::add(sum, part_sum);
    else if constexpr (kWholeScales<Format>)
        return add_at_once<Isa>(sum, total, minimum_or_factor[0], block.scale[row]);
    else
        return add_at_once<Isa>(sum, total, scale[0], block.scale[row]);
}

}  // namespace tessera::x86
