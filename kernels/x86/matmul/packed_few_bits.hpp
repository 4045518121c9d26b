// Weights of signs and of three levels as the integer kernels read them; see packed.hpp for the idea and the contract.
#pragma once

#include "../kit.hpp"
#include "fields.hpp"
#include "packed.hpp"
#include "packed_levels.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::x86 {

template <class Isa>
struct PackedWeight<Isa, BlockTq2_0> : PackedTraits<BlockTq2_0, Arithmetic{.groups = 1, .centre = 1}>,
                                       PackedByFields<PackedWeight<Isa, BlockTq2_0>> {
    struct Unit {
        uint8_t qs[2][8][Isa::kLanes][4];
        uint16_t d[Isa::kLanes];
    };
    TSR_FIELDS(qs, d)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) codes[s] = levels::two_bits<Isa, b>(unit.qs, s);
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq2Bn> : PackedTraits<BlockIq2Bn, Arithmetic{.groups = 1, .centre = 1}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq2Bn>> {
    struct Unit {
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(qs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        const typename Isa::Floats scale[1] = {row_scale};
        for_each_of<2>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 4; ++s) {
                const auto four = Isa::load(unit.qs[s]);
                codes[s] = Isa::template shifted_right<4 * b>(four, 3);
                codes[s + 4] = Isa::template shifted_right<4 * b + 2>(four, 3);
            }
            sink(b, codes, scale, scale);
        });
    }
};

// A sign is a code of 0 or 2 about a centre of 1. Bit s of byte i of a lane belongs to element 4 s + i of a block
// of 32.
template <class Isa>
struct PackedWeight<Isa, BlockQ1_0> : PackedTraits<BlockQ1_0, Arithmetic{.groups = 1, .centre = 1}> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qs)
    static void pack(Unit& unit, const IntoLanes<Isa, BlockQ1_0>& blocks) noexcept {
        fields(blocks, unit, *blocks.rows[0]);
        uint32_t bits[4 * Isa::kLanes];
        std::memcpy(bits, unit.qs, sizeof bits);
        for (uint32_t& lane : bits) lane = bytes_of_nibbles(lane);
        std::memcpy(unit.qs, bits, sizeof bits);
    }
    static void unpack(const Unit& unit, int lane, BlockQ1_0& block) noexcept {
        fields(FromLane{lane}, unit, block);
        uint32_t bits[4];
        std::memcpy(bits, block.qs, sizeof bits);
        for (uint32_t& b : bits) b = nibbles_of_bytes(b);
        std::memcpy(block.qs, bits, sizeof bits);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        for (int b = 0; b < 4; ++b) {
            const auto bits = Isa::load(unit.qs[b]);
            typename Isa::Bytes codes[8];
            codes[0] = Isa::template shifted_left<1>(bits, 2);
            for_each_of<7>([&]<int s>() { codes[s + 1] = Isa::template shifted_right<s>(bits, 2); });
            sink(b, codes, scale, scale);
        }
    }
};

}  // namespace tessera::x86
