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

// Numbers to the base 3 (tessera/formats/ternary.hpp), a byte each: fractions of 256 whose first digit is next, less
// 128, so that signed comparisons tell digits apart. Three times such a number is the next one, modulo 256.
namespace ternary {
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Bytes numbers(typename Isa::Bytes bytes) noexcept {
    return Isa::subtract_bytes(bytes, Isa::splat(uint8_t{128}));
}
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Bytes take_digit(typename Isa::Bytes& number) noexcept {
    const auto one = Isa::where_greater(number, Isa::splat(static_cast<uint8_t>(256 / 3 - 128)));
    const auto two = Isa::where_greater(number, Isa::splat(static_cast<uint8_t>(2 * 256 / 3 - 128)));
    number = Isa::add_bytes(Isa::add_bytes(number, number), number);
    return Isa::magnitudes(Isa::add_bytes(one, two));
}
}  // namespace ternary

template <class Isa>
struct PackedWeight<Isa, BlockTq1_0> : PackedTraits<BlockTq1_0, Arithmetic{.groups = 1, .centre = 1}>,
                                       PackedByFields<PackedWeight<Isa, BlockTq1_0>> {
    struct Unit {
        uint8_t qs[12][Isa::kLanes][4];
        uint8_t qh[Isa::kLanes][4];
        uint16_t d[Isa::kLanes];
    };
    TSR_FIELDS(qs, qh, d)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        using Bytes = typename Isa::Bytes;
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        Bytes codes[8], numbers[8], last = ternary::numbers<Isa>(Isa::load(unit.qh));
        for (int s = 0; s < 8; ++s) numbers[s] = ternary::numbers<Isa>(Isa::load(unit.qs[s]));
        for (int b = 0; b < 5; ++b) {
            for (int s = 0; s < 8; ++s) codes[s] = ternary::take_digit<Isa>(numbers[s]);
            sink(b, codes, scale, scale);
        }
        for (int s = 0; s < 4; ++s) numbers[s] = ternary::numbers<Isa>(Isa::load(unit.qs[8 + s]));
        for (int b = 5; b < 8; ++b) {
            for (int s = 0; s < 8; ++s) codes[s] = ternary::take_digit<Isa>(b == 7 && s >= 4 ? last : numbers[s % 4]);
            sink(b, codes, scale, scale);
        }
    }
};

// Five neighbouring elements of a row are one byte, four of them a step. So digits of the same place are taken from
// bytes of four halves (16 elements) at once, and interleaved to steps.
template <class Isa>
struct PackedWeight<Isa, BlockIq1Bn> : PackedTraits<BlockIq1Bn, Arithmetic{.groups = 1, .centre = 1}> {
    static constexpr int kHalves = 4, kBytes = 3;  // of a half
    static_assert(Isa::kLanes == 8);
    struct Unit {
        uint8_t ql[kBytes][2][kHalves][4];  // [byte of a half][rows 4 i ..][half][row]
        uint8_t extra[8];
    };
    static void pack(Unit& unit, const IntoLanes<Isa, BlockIq1Bn>& blocks) noexcept {
        const unsigned char* from[8];
        unsigned char bytes[13][8];
        for (int lane = 0; lane < 8; ++lane) from[lane] = reinterpret_cast<const unsigned char*>(blocks.rows[lane]);
        Isa::template interleave<1, 8>(from, bytes[0]);
        for (auto& row : from) row += 5;
        Isa::template interleave<1, 8>(from, bytes[5]);
        for (int i = 0; i < kHalves * kBytes; ++i) {
            for (int rows = 0; rows < 2; ++rows)
                std::memcpy(unit.ql[i % kBytes][rows][i / kBytes], bytes[i] + 4 * rows, 4);
        }
        std::memcpy(unit.extra, bytes[12], 8);
    }
    static void unpack(const Unit& unit, int lane, BlockIq1Bn& block) noexcept {
        for (int i = 0; i < kHalves * kBytes; ++i) block.ql[i] = unit.ql[i % kBytes][lane / 4][i / kBytes][lane % 4];
        block.extra = unit.extra[lane];
    }
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        using Bytes = typename Isa::Bytes;
        alignas(32) static constexpr uint32_t kPowers[8] = {0x51515151, 0x1B1B1B1B, 0x09090909, 0x03030303,
                                                            0x51515151, 0x1B1B1B1B, 0x09090909, 0x03030303};
        Bytes element[16], codes[2][8];
        for (int i = 0; i < kBytes; ++i) {
            auto number = ternary::numbers<Isa>(Isa::load(unit.ql[i]));
            for (int digit = 0; digit < 5; ++digit) element[5 * i + 4 - digit] = ternary::take_digit<Isa>(number);
        }
        const auto extra = ternary::numbers<Isa>(Isa::repeated_halves(unit.extra));
        auto number = Isa::multiplied_bytes(extra, Isa::load(kPowers));
        element[15] = ternary::take_digit<Isa>(number);
        for (int s = 0; s < 4; ++s) {
            const Bytes of[4] = {element[4 * s], element[4 * s + 1], element[4 * s + 2], element[4 * s + 3]};
            Bytes steps[kHalves];
            Isa::interleave_four(of, steps);
            for (int half = 0; half < kHalves; ++half) codes[half / 2][half % 2 * 4 + s] = steps[half];
        }
        const typename Isa::Floats scale[1] = {row_scale};
        for (int b = 0; b < 2; ++b) sink(b, codes[b], scale, scale);
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
