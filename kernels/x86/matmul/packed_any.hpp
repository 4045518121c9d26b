// Weights of any format as the integer kernels read them, by what the format says of its blocks' codes
// (tessera/formats/block_codes.hpp): what a format has that has no PackedWeight by hand. Codes are taken apart one by
// one, which costs more than multiplying them. A unit is the blocks of its rows side by side.
#pragma once

#include "../kit.hpp"
#include "fields.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::x86 {

// Signed codes with a scale for 32 elements; else floats as scales and minima, which unsigned codes have.
template <class Block>
constexpr Arithmetic arithmetic_of_codes() noexcept {
    if constexpr (!Block::kOffsets && Block::kScaleElements == 32) {
        return {.groups = 1, .is_signed = true};
    } else {
        constexpr int kGroups = 32 / Block::kScaleElements;
        static_assert(Block::kLargestCode <= 16 * kGroups, "sums of larger codes do not fit 16 bits");
        return {.groups = kGroups, .parts = kGroups, .centre = Block::kLargestCode, .has_minimum = true};
    }
}

template <class Isa, class Block>
struct PackedWeight : PackedTraits<Block, arithmetic_of_codes<Block>()> {
    using Traits = PackedTraits<Block, arithmetic_of_codes<Block>()>;
    struct Unit {
        Block rows[Isa::kLanes];
    };
    static void pack(Unit& unit, const IntoLanes<Isa, Block>& blocks) noexcept {
        for (int lane = 0; lane < Isa::kLanes; ++lane) unit.rows[lane] = *blocks.rows[lane];
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept { block = unit.rows[lane]; }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        visit(unit, Isa::splat(1.0f), sink);
    }
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        constexpr int kGroups = Traits::kGroups, kAdded = Traits::kSigned ? 0 : Traits::kCentre;
        alignas(64) float row_scales[Isa::kLanes], scales[kGroups][Isa::kLanes], minima[kGroups][Isa::kLanes];
        alignas(64) int8_t bytes[8][Isa::kLanes][4];
        Isa::store_floats(row_scales, row_scale);
        for (int b = 0; b < Traits::kBlocks; ++b) {
            for (int lane = 0; lane < Isa::kLanes; ++lane) {
                for (int half = 0; half < 2; ++half) {
                    const Codes16 of = codes_at(unit.rows[lane], row_scales[lane], 2 * b + half);
                    for (int i = 0; i < 16; ++i)
                        bytes[4 * half + i / 4][lane][i % 4] = static_cast<int8_t>(of.codes[i] + kAdded);
                    scales[half * (kGroups - 1)][lane] = of.scale;
                    minima[half * (kGroups - 1)][lane] = of.offset;
                }
            }
            typename Isa::Bytes codes[8];
            typename Isa::Floats scale[kGroups], minimum[kGroups];
            for (int s = 0; s < 8; ++s) codes[s] = Isa::load(bytes[s]);
            for (int g = 0; g < kGroups; ++g) {
                scale[g] = Isa::load_floats(scales[g]);
                minimum[g] = Isa::load_floats(minima[g]);
            }
            sink(b, codes, scale, minimum);
        }
    }
};

}  // namespace tessera::x86
