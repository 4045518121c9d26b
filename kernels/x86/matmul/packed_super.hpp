// Weights of the formats of 256 elements as the integer kernels read them; see packed.hpp for the idea and the
// contract.
//
// The small integer scales of a super-block keep their bits. They are converted to floats once a unit: scale and
// minimum of a group are then what they are in the formats of 32, with one or two groups in each 32 elements.
#pragma once

#include "../kit.hpp"
#include "packed.hpp"

namespace tessera::x86 {

inline constexpr int kUnitBlocks = kSuperBlock / 32;

// Eight equal bytes.
constexpr uint64_t every_byte(uint64_t byte) noexcept {
    return byte * 0x0101010101010101u;
}

// q4_K and q5_K keep 6-bit scales and minima of eight groups in 12 bytes of a row. The scales, then the minima: a byte
// a lane, eight lanes at a time. Bytes are loaded once: from a copy, wide loads would wait for narrower stores.
inline void spread_scale_min(const uint8_t (&bytes)[12][8], uint64_t (&scale)[8], uint64_t (&minimum)[8]) noexcept {
    const auto eight = [&](int i) {
        uint64_t value;
        std::memcpy(&value, bytes[i], sizeof value);
        return value;
    };
    for (int j = 0; j < 4; ++j) {
        const uint64_t low = eight(j), low_minimum = eight(j + 4), high = eight(j + 8);
        scale[j] = low & every_byte(63);
        minimum[j] = low_minimum & every_byte(63);
        scale[j + 4] = (high & every_byte(15)) | (low >> 2 & every_byte(48));
        minimum[j + 4] = (high >> 4 & every_byte(15)) | (low_minimum >> 2 & every_byte(48));
    }
}

// q4_K: nibbles of 64 elements are in 32 bytes: the low ones of the first block of 32, the high ones of the second.
template <class Isa>
struct PackedWeight<Isa, BlockQ4K> : PackedTraits<BlockQ4K, Arithmetic{.groups = 1, .centre = 8, .has_minimum = true}>,
                                     PackedByFields<PackedWeight<Isa, BlockQ4K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        uint8_t scales[12][Isa::kLanes];
        uint8_t qs[4][8][Isa::kLanes][4];  // [64 elements][step]
    };
    TSR_FIELDS(d, dmin, scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        uint64_t scales[8], minima[8];
        spread_scale_min(unit.scales, scales, minima);
        const auto d = Isa::from_f16(unit.d);
        const auto dmin = Isa::from_f16(unit.dmin);
        const auto part = [&](int b, const auto& codes) {
            const typename Isa::Floats scale[1] = {Isa::multiply(d, Isa::from_u8(scales[b]))};
            const typename Isa::Floats minimum[1] = {
                Isa::subtract(Isa::multiply(scale[0], Isa::splat(8.0f)), Isa::multiply(dmin, Isa::from_u8(minima[b])))};
            sink(b, codes, scale, minimum);
        };
        for (int pair = 0; pair < 4; ++pair) {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) codes[s] = Isa::template shifted_right<0>(Isa::load(unit.qs[pair][s]), 15);
            part(2 * pair, codes);
            for (int s = 0; s < 8; ++s) codes[s] = Isa::template shifted_right<4>(Isa::load(unit.qs[pair][s]), 15);
            part(2 * pair + 1, codes);
        }
    }
};

// q5_K: as q4_K; bit b of a byte of qh is the fifth bit of an element of block b.
template <class Isa>
struct PackedWeight<Isa, BlockQ5K> : PackedTraits<BlockQ5K, Arithmetic{.groups = 1, .centre = 16, .has_minimum = true}>,
                                     PackedByFields<PackedWeight<Isa, BlockQ5K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        uint8_t scales[12][Isa::kLanes];
        uint8_t qh[8][Isa::kLanes][4];
        uint8_t qs[4][8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, dmin, scales, qh, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        uint64_t scales[8], minima[8];
        spread_scale_min(unit.scales, scales, minima);
        const auto d = Isa::from_f16(unit.d);
        const auto dmin = Isa::from_f16(unit.dmin);
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto low = Isa::template shifted_right<4 * (b % 2)>(Isa::load(unit.qs[b / 2][s]), 15);
                const auto high = Isa::load(unit.qh[s]);
                if constexpr (b < 4)
                    codes[s] = Isa::either(low, Isa::template shifted_left<4 - b>(high, 16));
                else
                    codes[s] = Isa::either(low, Isa::template shifted_right<b - 4>(high, 16));
            }
            const typename Isa::Floats scale[1] = {Isa::multiply(d, Isa::from_u8(scales[b]))};
            const typename Isa::Floats minimum[1] = {Isa::subtract(Isa::multiply(scale[0], Isa::splat(16.0f)),
                                                                   Isa::multiply(dmin, Isa::from_u8(minima[b])))};
            sink(b, codes, scale, minimum);
        });
    }
};

// q2_K: two bits; of 128 elements in 32 bytes, block b (0..3) in bits 2 b. Scale and minimum of four bits for 16
// elements.
template <class Isa>
struct PackedWeight<Isa, BlockQ2K> : PackedTraits<BlockQ2K, Arithmetic{.groups = 2, .centre = 0, .has_minimum = true}>,
                                     PackedByFields<PackedWeight<Isa, BlockQ2K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        uint8_t scales[16][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];  // [128 elements][step]
    };
    TSR_FIELDS(d, dmin, scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
        const auto dmin = Isa::subtract(Isa::zero_floats(), Isa::from_f16(unit.dmin));
        const auto part = [&]<int b>(int half) {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) codes[s] = Isa::template shifted_right<2 * b>(Isa::load(unit.qs[half][s]), 3);
            const int g = 8 * half + 2 * b;
            const auto *first = unit.scales[g], *second = unit.scales[g + 1];
            const typename Isa::Floats scale[2] = {Isa::multiply(d, Isa::template floats_of_u8<0, 4>(first)),
                                                   Isa::multiply(d, Isa::template floats_of_u8<0, 4>(second))};
            const typename Isa::Floats minimum[2] = {Isa::multiply(dmin, Isa::template floats_of_u8<4, 4>(first)),
                                                     Isa::multiply(dmin, Isa::template floats_of_u8<4, 4>(second))};
            sink(4 * half + b, codes, scale, minimum);
        };
        for (int half = 0; half < 2; ++half) {
            part.template operator()<0>(half);
            part.template operator()<1>(half);
            part.template operator()<2>(half);
            part.template operator()<3>(half);
        }
    }
};

// q3_K: as q2_K, with a third bit in hmask (bit b for block b of all eight) and signed six-bit scales of 16 elements.
template <class Isa>
struct PackedWeight<Isa, BlockQ3K> : PackedTraits<BlockQ3K, Arithmetic{.groups = 2, .centre = 4}>,
                                     PackedByFields<PackedWeight<Isa, BlockQ3K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t scales[12][Isa::kLanes];
        uint8_t hmask[8][Isa::kLanes][4];
        uint8_t qs[2][8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, scales, hmask, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        // Scale g has its low nibble in byte g % 8, its upper bits in byte 8 + g % 4.
        const auto scale_of = [&]<int g>() {
            const auto low = Isa::template bits_of_u8 < g < 8 ? 0 : 4, 4 > (unit.scales[g % 8]);
            const auto high = Isa::template bits_of_u8<2 * (g / 4), 2>(unit.scales[8 + g % 4]);
            return Isa::both_halves(Isa::plus(Isa::nibble_above(high, low), -32));
        };
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto low = Isa::template shifted_right<2 * (b % 4)>(Isa::load(unit.qs[b / 4][s]), 3);
                const auto high = Isa::load(unit.hmask[s]);
                if constexpr (b < 3)
                    codes[s] = Isa::either(low, Isa::template shifted_left<2 - b>(high, 4));
                else
                    codes[s] = Isa::either(low, Isa::template shifted_right<b - 2>(high, 4));
            }
            const typename Isa::Ints scale[2] = {scale_of.template operator()<2 * b>(),
                                                 scale_of.template operator()<2 * b + 1>()};
            sink(b, codes, scale, factor);
        });
    }
};

// q6_K: of 128 elements, nibbles in 64 bytes (blocks 0 and 1 low, 2 and 3 high) and two bits in 32 (block b in bits 2
// b); signed bytes as scales of 16 elements.
template <class Isa>
struct PackedWeight<Isa, BlockQ6K> : PackedTraits<BlockQ6K, Arithmetic{.groups = 2, .centre = 32}>,
                                     PackedByFields<PackedWeight<Isa, BlockQ6K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        int8_t scales[16][Isa::kLanes];
        uint8_t qh[2][8][Isa::kLanes][4];     // [128 elements][step]
        uint8_t ql[2][2][8][Isa::kLanes][4];  // [128 elements][block % 2][step]
    };
    TSR_FIELDS(d, scales, qh, ql)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto part = [&]<int b>(int half) {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto low = Isa::template shifted_right<4 * (b / 2)>(Isa::load(unit.ql[half][b % 2][s]), 15);
                const auto high = Isa::load(unit.qh[half][s]);
                if constexpr (b < 2)
                    codes[s] = Isa::either(low, Isa::template shifted_left<4 - 2 * b>(high, 48));
                else
                    codes[s] = Isa::either(low, Isa::template shifted_right<2 * b - 4>(high, 48));
            }
            const int g = 8 * half + 2 * b;
            const typename Isa::Ints scale[2] = {Isa::both_halves(Isa::widen_s8(unit.scales[g])),
                                                 Isa::both_halves(Isa::widen_s8(unit.scales[g + 1]))};
            sink(4 * half + b, codes, scale, factor);
        };
        for (int half = 0; half < 2; ++half) {
            part.template operator()<0>(half);
            part.template operator()<1>(half);
            part.template operator()<2>(half);
            part.template operator()<3>(half);
        }
    }
};

// Bytes, eight blocks under one scale.
template <class Isa>
struct PackedWeight<Isa, BlockQ8KF16> : PackedTraits<BlockQ8KF16, Arithmetic{.groups = 1, .is_signed = true}>,
                                        PackedByFields<PackedWeight<Isa, BlockQ8KF16>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[kUnitBlocks][8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            byte_codes<Isa>(unit.qs[b], codes);
            sink(b, codes, scale, scale);
        }
    }
};

// iq4_xs: blocks of iq4_nl with signed six-bit scales.
template <class Isa>
struct PackedWeight<Isa, BlockIq4Xs> : PackedTraits<BlockIq4Xs, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq4Xs>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t scales_h[Isa::kLanes];
        uint8_t scales_l[4][Isa::kLanes];
        uint8_t qs[kUnitBlocks][4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, scales_h, scales_l, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
        const auto d_32 = Isa::multiply(d, Isa::splat(-32.0f));
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            nibble_levels<Isa>(kIq4Values, unit.qs[b], codes);
            const auto six = Isa::or_shifted(unit.scales_l[b / 2], 4 * (b % 2), unit.scales_h, 2 * b);
            const typename Isa::Floats scale[1] = {Isa::fma(d, six, d_32)};
            sink(b, codes, scale, scale);
        }
    }
};

}  // namespace tessera::x86
