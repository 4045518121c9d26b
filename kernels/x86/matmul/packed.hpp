// Weights of the formats of 32 as the integer kernels read them: kLanes rows interleaved, in the bytes they had in the
// file.
//
// A group of kLanes rows is a sequence of units, each the blocks of one place in all its rows. Inside a unit every
// field of a block becomes a vector with one lane a row: "step" s of a block is a vector whose lane r holds the codes
// of elements 4 s .. 4 s + 3 of row r. A packed group takes exactly the bytes of its rows.
//
// Each format is a PackedWeight<Isa, Block> over the ISA policy: its unit, `pack` and `unpack` of one unit (exact,
// plain C++), and `visit`, which passes the unit's decoded blocks of 32 elements to a sink, one after another:
//     sink(block, const Bytes (&codes)[8], const Floats (&scale)[kGroups], const Floats (&minimum)[kGroups])
// A weight is scale * (code - kCentre) + minimum; without kHasMinimum the minimum is not looked at. If kSigned, codes
// are signed and there is no centre. Two scales without minimum are whole numbers of 16 bits, each twice in a lane, and
// a weight is factor * scale * (code - kCentre):
//     sink(block, const Bytes (&codes)[8], const Ints (&scale)[2], const Floats (&factor)[1])
#pragma once

#include "../kit.hpp"
#include "fields.hpp"

#include <tessera/cpu/formats.hpp>
#include <tessera/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::x86 {

// Codes of a block of 32 whose vector s holds step s in its low nibbles and step s + 4 in its high ones.
template <class Isa, int kLanes>
[[gnu::always_inline]] inline void nibble_codes(const uint8_t (&bytes)[4][kLanes][4],
                                                typename Isa::Bytes (&out)[8]) noexcept {
    for (int s = 0; s < 4; ++s) {
        const auto both = Isa::load(bytes[s]);
        out[s] = Isa::template shifted_right<0>(both, 15);
        out[s + 4] = Isa::template shifted_right<4>(both, 15);
    }
}

// The same through a table of 16 levels.
template <class Isa, int kLanes>
[[gnu::always_inline]] inline void nibble_levels(const int8_t (&table)[16], const uint8_t (&bytes)[4][kLanes][4],
                                                 typename Isa::Bytes (&out)[8]) noexcept {
    nibble_codes<Isa>(bytes, out);
    for (auto& code : out) code = Isa::lookup16(table, code);
}

// Codes of a block of 32 that are bytes.
template <class Isa, int kLanes>
[[gnu::always_inline]] inline void byte_codes(const uint8_t (&bytes)[8][kLanes][4],
                                              typename Isa::Bytes (&out)[8]) noexcept {
    for (int s = 0; s < 8; ++s) out[s] = Isa::load(bytes[s]);
}

template <class Isa>
struct PackedWeight<Isa, BlockQ4_0> : PackedTraits<BlockQ4_0, Arithmetic{.groups = 1, .centre = 8}>,
                                      PackedByFields<PackedWeight<Isa, BlockQ4_0>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_codes<Isa>(unit.qs, codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockQ4_1>
    : PackedTraits<BlockQ4_1, Arithmetic{.groups = 1, .centre = 8, .has_minimum = true}>,
      PackedByFields<PackedWeight<Isa, BlockQ4_1>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t m[Isa::kLanes];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, m, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_codes<Isa>(unit.qs, codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        const typename Isa::Floats minimum[1] = {Isa::fma(scale[0], Isa::splat(8.0f), Isa::from_f16(unit.m))};
        sink(0, codes, scale, minimum);
    }
};

// Bits whose places differ in bits kHigh and kLow of their numbers exchange them.
template <int kHigh, int kLow>
constexpr uint32_t with_places_exchanged(uint32_t bits) noexcept {
    constexpr uint32_t kBelow = [] {
        uint32_t mask = 0;
        for (uint32_t place = 0; place < 32; ++place) mask |= (place >> kLow & ~(place >> kHigh) & 1u) << place;
        return mask;
    }();
    constexpr int kShift = (1 << kHigh) - (1 << kLow);
    const uint32_t differing = (bits >> kShift ^ bits) & kBelow;
    return bits ^ differing ^ differing << kShift;
}
// Bit 4 s + i to bit 8 i + s for eight s and four i, and back. Without branches, for vectors of numbers.
constexpr uint32_t bytes_of_nibbles(uint32_t bits) noexcept {
    bits = with_places_exchanged<3, 0>(with_places_exchanged<4, 1>(bits));
    return with_places_exchanged<1, 0>(with_places_exchanged<2, 1>(bits));
}
constexpr uint32_t nibbles_of_bytes(uint32_t bits) noexcept {
    bits = with_places_exchanged<2, 1>(with_places_exchanged<1, 0>(bits));
    return with_places_exchanged<4, 1>(with_places_exchanged<3, 0>(bits));
}
static_assert(bytes_of_nibbles(0x00000F00u) == 0x04040404u && bytes_of_nibbles(0x11111111u) == 0xFFu);
static_assert(nibbles_of_bytes(0x04040404u) == 0x00000F00u && nibbles_of_bytes(0xFFu) == 0x11111111u);

// The fifth bits of a block of 32: bit s of byte i of a lane belongs to element 4 s + i.
template <int kLanes>
struct PackedFifthBits {
    uint8_t bytes[kLanes][4];

    void pack(int lane, const uint8_t* qh) noexcept {
        uint32_t bits;
        std::memcpy(&bits, qh, 4);
        bits = bytes_of_nibbles(bits);
        std::memcpy(bytes[lane], &bits, 4);
    }
    void unpack(int lane, uint8_t* qh) const noexcept {
        uint32_t bits;
        std::memcpy(&bits, bytes[lane], 4);
        bits = nibbles_of_bytes(bits);
        std::memcpy(qh, &bits, 4);
    }
    template <class Isa>
    void add_to(typename Isa::Bytes (&codes)[8]) const noexcept {
        const auto all = Isa::load(bytes);
        codes[0] = Isa::either(codes[0], Isa::template shifted_left<4>(all, 16));
        codes[1] = Isa::either(codes[1], Isa::template shifted_left<3>(all, 16));
        codes[2] = Isa::either(codes[2], Isa::template shifted_left<2>(all, 16));
        codes[3] = Isa::either(codes[3], Isa::template shifted_left<1>(all, 16));
        codes[4] = Isa::either(codes[4], Isa::template shifted_right<0>(all, 16));
        codes[5] = Isa::either(codes[5], Isa::template shifted_right<1>(all, 16));
        codes[6] = Isa::either(codes[6], Isa::template shifted_right<2>(all, 16));
        codes[7] = Isa::either(codes[7], Isa::template shifted_right<3>(all, 16));
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockQ5_0> : PackedTraits<BlockQ5_0, Arithmetic{.groups = 1, .centre = 16}>,
                                      PackedByFields<PackedWeight<Isa, BlockQ5_0>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        PackedFifthBits<Isa::kLanes> qh;
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qh, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_codes<Isa>(unit.qs, codes);
        unit.qh.template add_to<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockQ5_1>
    : PackedTraits<BlockQ5_1, Arithmetic{.groups = 1, .centre = 16, .has_minimum = true}>,
      PackedByFields<PackedWeight<Isa, BlockQ5_1>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t m[Isa::kLanes];
        PackedFifthBits<Isa::kLanes> qh;
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, m, qh, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_codes<Isa>(unit.qs, codes);
        unit.qh.template add_to<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        const typename Isa::Floats minimum[1] = {Isa::fma(scale[0], Isa::splat(16.0f), Isa::from_f16(unit.m))};
        sink(0, codes, scale, minimum);
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockQ8_0> : PackedTraits<BlockQ8_0, Arithmetic{.groups = 1, .is_signed = true}>,
                                      PackedByFields<PackedWeight<Isa, BlockQ8_0>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        byte_codes<Isa>(unit.qs, codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

// One scale for 32 elements, given twice: a sum of 32 products of six-bit codes would not fit 16 bits.
template <class Isa>
struct PackedWeight<Isa, BlockQ6_0> : PackedTraits<BlockQ6_0, Arithmetic{.groups = 2, .centre = 32}>,
                                      PackedByFields<PackedWeight<Isa, BlockQ6_0>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qh[2][Isa::kLanes][4];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qh, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_codes<Isa>(unit.qs, codes);
        for_each_of<8>([&]<int s>() {
            constexpr int kFrom = 4 * (s / 2 % 2) + 2 * (s / 4);
            const auto high = Isa::load(unit.qh[s % 2]);
            if constexpr (kFrom < 4)
                codes[s] = Isa::either(codes[s], Isa::template shifted_left<4 - kFrom>(high, 48));
            else
                codes[s] = Isa::either(codes[s], Isa::template shifted_right<kFrom - 4>(high, 48));
        });
        const typename Isa::Ints scale[2] = {Isa::both_halves(1), Isa::both_halves(1)};
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, factor);
    }
};

// Levels of at most 12 stay unsigned.
alignas(16) inline constexpr int8_t kMxfp4Centred[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4};
template <class Isa>
struct PackedWeight<Isa, BlockMxfp4> : PackedTraits<BlockMxfp4, Arithmetic{.groups = 1, .centre = 16}>,
                                       PackedByFields<PackedWeight<Isa, BlockMxfp4>> {
    struct Unit {
        uint8_t e[Isa::kLanes];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(e, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_levels<Isa>(kMxfp4Centred, unit.qs, codes);
        const typename Isa::Floats scale[1] = {Isa::from_half_e8m0(unit.e)};
        sink(0, codes, scale, scale);
    }
};

// The same levels; a minimum of nought makes floats of the scales.
template <class Isa>
struct PackedWeight<Isa, BlockNvfp4>
    : PackedTraits<BlockNvfp4, Arithmetic{.groups = 2, .centre = 16, .has_minimum = true}>,
      PackedByFields<PackedWeight<Isa, BlockNvfp4>> {
    struct Unit {
        uint8_t scales[4][Isa::kLanes];
        uint8_t qs[4][2][Isa::kLanes][4];
    };
    TSR_FIELDS(scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats minimum[2] = {Isa::zero_floats(), Isa::zero_floats()};
        for (int b = 0; b < 2; ++b) {
            typename Isa::Bytes codes[8];
            typename Isa::Floats scale[2];
            for (int g = 0; g < 2; ++g) {
                for (int s = 0; s < 2; ++s) {
                    const auto both = Isa::load(unit.qs[2 * b + g][s]);
                    codes[4 * g + s] = Isa::lookup16(kMxfp4Centred, Isa::template shifted_right<0>(both, 15));
                    codes[4 * g + s + 2] = Isa::lookup16(kMxfp4Centred, Isa::template shifted_right<4>(both, 15));
                }
                scale[g] = Isa::from_half_e4m3(unit.scales[2 * b + g]);
            }
            sink(b, codes, scale, minimum);
        }
    }
};

// Bytes under the scale of a row.
template <class Isa, class Block>
struct PackedRowBytes : PackedTraits<Block, Arithmetic{.groups = 1, .is_signed = true}>,
                        PackedByFields<PackedRowBytes<Isa, Block>> {
    struct Unit {
        uint8_t qs[8][Isa::kLanes][4];
    };
    TSR_FIELDS(qs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        byte_codes<Isa>(unit.qs, codes);
        const typename Isa::Floats scale[1] = {row_scale};
        sink(0, codes, scale, scale);
    }
};
template <class Isa>
struct PackedWeight<Isa, BlockQ8Row> : PackedRowBytes<Isa, BlockQ8Row> {};
template <class Isa>
struct PackedWeight<Isa, BlockQ8KV> : PackedRowBytes<Isa, BlockQ8KV> {};

template <class Isa>
struct PackedWeight<Isa, BlockIq4Nl> : PackedTraits<BlockIq4Nl, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq4Nl>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        nibble_levels<Isa>(kIq4Values, unit.qs, codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

}  // namespace tessera::x86
