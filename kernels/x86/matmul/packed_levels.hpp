// Weights of ik's formats of uneven levels as the integer kernels read them; see packed.hpp for the idea and the
// contract.
//
// Codes choose from a table in a register. The second set of levels is the first plus a constant, so that choice is an
// addition of bytes, in the lanes of the rows that select it. Levels of at most 32 with 16 elements to a sum, and
// of at most 64 with eight, stay unsigned. Where a scale is for a row, `visit` gets it as a vector of the group's rows.
#pragma once

#include "../kit.hpp"
#include "fields.hpp"
#include "packed_super.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::x86 {
namespace levels {

// A table of at most 16 levels, each plus `centre`.
template <size_t kCount>
constexpr std::array<int8_t, 16> table_of(const int8_t (&values)[kCount], int centre = 0) noexcept {
    std::array<int8_t, 16> table{};
    for (size_t i = 0; i < 16; ++i) table[i] = static_cast<int8_t>(values[i % kCount] + centre);
    return table;
}
template <size_t kCount>
constexpr std::array<int8_t, kCount> with_centre(const int8_t (&values)[kCount], int centre) noexcept {
    std::array<int8_t, kCount> table{};
    for (size_t i = 0; i < kCount; ++i) table[i] = static_cast<int8_t>(values[i] + centre);
    return table;
}
inline constexpr int kIq2kCentre = 32, kIq3kCentre = 63;
alignas(16) inline constexpr std::array<int8_t, 16> kIq2k = table_of(kIq2kValues, kIq2kCentre);
alignas(16) inline constexpr std::array<int8_t, 16> kIq3k = table_of(kIq3kValues, kIq3kCentre);

// Codes of block `b` of 32 in the four arrangements, one step.
template <class Isa, int b, int kLanes>
[[gnu::always_inline]] inline typename Isa::Bytes two_bits(const uint8_t (&qs)[2][8][kLanes][4], int s) noexcept {
    return Isa::template shifted_right<2 * (b % 4)>(Isa::load(qs[b / 4][s]), 3);
}
// Bit b of `high`, moved to bit kTo.
template <class Isa, int b, int kTo, int kSteps, int kLanes>
[[gnu::always_inline]] inline typename Isa::Bytes with_bit(typename Isa::Bytes low,
                                                           const uint8_t (&high)[kSteps][kLanes][4], int s) noexcept {
    const auto bits = Isa::load(high[s]);
    if constexpr (b < kTo)
        return Isa::either(low, Isa::template shifted_left<kTo - b>(bits, 1 << kTo));
    else
        return Isa::either(low, Isa::template shifted_right<b - kTo>(bits, 1 << kTo));
}
template <class Isa, int b, int kLanes>
[[gnu::always_inline]] inline typename Isa::Bytes wide_nibble(const uint8_t (&qs)[4][8][kLanes][4], int s) noexcept {
    return Isa::template shifted_right<4 * (b % 2)>(Isa::load(qs[b / 2][s]), 15);
}

// Six bits of scale of half `h`, less 32: iq4_k and iq5_k.
template <class Isa, int h, int kLanes>
[[gnu::always_inline]] inline typename Isa::Ints six_bit_scale(const uint8_t (&low)[8][kLanes],
                                                               const uint8_t (&high)[4][kLanes]) noexcept {
    const auto four = Isa::template bits_of_u8<4 * (h % 2), 4>(low[h / 2]);
    const auto two = Isa::template bits_of_u8<2 * (h % 4), 2>(high[h / 4]);
    return Isa::both_halves(Isa::plus(Isa::nibble_above(two, four), -32));
}

// (scale & 254) - 127 times the row's scale, and what the levels are shifted by: iq4_ks and iq5_ks.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Floats odd_scale(const uint8_t* scales,
                                                             typename Isa::Floats row_scale) noexcept {
    const auto seven = Isa::template floats_of_u8<1, 7>(scales);
    return Isa::multiply(row_scale, Isa::fma(seven, Isa::splat(2.0f), Isa::splat(-127.0f)));
}

}  // namespace levels

template <class Isa>
struct PackedWeight<Isa, BlockIq2K> : PackedTraits<BlockIq2K, Arithmetic{.groups = 2, .centre = levels::kIq2kCentre}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq2K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t extra[Isa::kLanes];
        uint8_t scales[8][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, extra, scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto extra = Isa::widen_u16(unit.extra);
        for_each_of<kUnitBlocks>([&]<int b>() {
            const typename Isa::Bytes shift[2] = {Isa::template where_bit<2 * b>(extra, kIq2kShift),
                                                  Isa::template where_bit<2 * b + 1>(extra, kIq2kShift)};
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                codes[s] = Isa::add_bytes(Isa::lookup16(levels::kIq2k.data(), levels::two_bits<Isa, b>(unit.qs, s)),
                                          shift[s / 4]);
            }
            const typename Isa::Ints scale[2] = {
                Isa::both_halves(Isa::plus(Isa::template bits_of_u8<0, 4>(unit.scales[b]), -8)),
                Isa::both_halves(Isa::plus(Isa::template bits_of_u8<4, 4>(unit.scales[b]), -8))};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq2Ks> : PackedTraits<BlockIq2Ks, Arithmetic{.groups = 2, .centre = levels::kIq2kCentre}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq2Ks>> {
    struct Unit {
        uint16_t extra[Isa::kLanes];
        uint8_t scales[4][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];
    };
    TSR_FIELDS(extra, scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        const auto extra = Isa::widen_u16(unit.extra);
        const typename Isa::Floats factor[1] = {row_scale};
        for_each_of<kUnitBlocks>([&]<int b>() {
            const auto shift = Isa::template where_bit<b>(extra, kIq2kShift);
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                codes[s] =
                    Isa::add_bytes(Isa::lookup16(levels::kIq2k.data(), levels::two_bits<Isa, b>(unit.qs, s)), shift);
            }
            const auto four = Isa::template bits_of_u8<4 * (b % 2), 4>(unit.scales[b / 2]);
            const auto one = Isa::template bits_of_lane<8 + b, 1>(extra);
            const auto both = Isa::both_halves(Isa::plus(Isa::nibble_above(one, four), -16));
            const typename Isa::Ints scale[2] = {both, both};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq3K>
    : PackedTraits<BlockIq3K, Arithmetic{.groups = 2, .parts = 4, .centre = levels::kIq3kCentre}>,
      PackedByFields<PackedWeight<Isa, BlockIq3K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t extra[Isa::kLanes];
        uint16_t scales_h[Isa::kLanes];
        uint8_t scales_l[8][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];
        uint8_t qh[8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, extra, scales_h, scales_l, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto extra = Isa::widen_u16(unit.extra);
        const auto minus = Isa::widen_u16(unit.scales_h);
        for_each_of<kUnitBlocks>([&]<int b>() {
            const typename Isa::Bytes shift[2] = {Isa::template where_bit<2 * b>(extra, kIq3kShift),
                                                  Isa::template where_bit<2 * b + 1>(extra, kIq3kShift)};
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto code = levels::with_bit<Isa, b, 2>(levels::two_bits<Isa, b>(unit.qs, s), unit.qh, s);
                codes[s] = Isa::add_bytes(Isa::lookup16(levels::kIq3k.data(), code), shift[s / 4]);
            }
            const auto scale_of = [&]<int h>() {
                const auto four = Isa::template bits_of_u8<4 * h, 4>(unit.scales_l[b]);
                const auto odd = Isa::plus(Isa::add_lanes(four, four), 1);
                return Isa::both_halves(Isa::template negated_where<2 * b + h>(odd, minus));
            };
            const typename Isa::Ints scale[2] = {scale_of.template operator()<0>(), scale_of.template operator()<1>()};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq3Ks>
    : PackedTraits<BlockIq3Ks, Arithmetic{.groups = 1, .parts = 4, .centre = levels::kIq3kCentre}>,
      PackedByFields<PackedWeight<Isa, BlockIq3Ks>> {
    struct Unit {
        uint16_t extra[Isa::kLanes];
        uint8_t scales[4][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];
        uint8_t qh[8][Isa::kLanes][4];
    };
    TSR_FIELDS(extra, scales, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        const auto extra = Isa::widen_u16(unit.extra);
        const auto d_16 = Isa::multiply(row_scale, Isa::splat(-16.0f));
        for_each_of<kUnitBlocks>([&]<int b>() {
            const auto shift = Isa::template where_bit<8 + b>(extra, kIq3kShift);
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto code = levels::with_bit<Isa, b, 2>(levels::two_bits<Isa, b>(unit.qs, s), unit.qh, s);
                codes[s] = Isa::add_bytes(Isa::lookup16(levels::kIq3k.data(), code), shift);
            }
            const auto four = Isa::template bits_of_u8<4 * (b / 4), 4>(unit.scales[b % 4]);
            const auto one = Isa::template bits_of_lane<b, 1>(extra);
            const typename Isa::Floats scale[1] = {
                Isa::fma(row_scale, Isa::to_floats(Isa::nibble_above(one, four)), d_16)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq4K> : PackedTraits<BlockIq4K, Arithmetic{.groups = 2, .is_signed = true}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq4K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t extra[Isa::kLanes];
        uint8_t scales_h[4][Isa::kLanes];
        uint8_t scales_l[8][Isa::kLanes];
        uint8_t qs[kUnitBlocks][4][Isa::kLanes][4];
    };
    TSR_FIELDS(d, extra, scales_h, scales_l, qs)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto extra = Isa::widen_u16(unit.extra);
        for_each_of<kUnitBlocks>([&]<int b>() {
            const typename Isa::Bytes shift[2] = {Isa::template where_bit<2 * b>(extra, kIq4kShift),
                                                  Isa::template where_bit<2 * b + 1>(extra, kIq4kShift)};
            typename Isa::Bytes codes[8];
            nibble_codes<Isa>(unit.qs[b], codes);
            for (int s = 0; s < 8; ++s) codes[s] = Isa::add_bytes(Isa::lookup16(kIq4Values, codes[s]), shift[s / 4]);
            const typename Isa::Ints scale[2] = {levels::six_bit_scale<Isa, 2 * b>(unit.scales_l, unit.scales_h),
                                                 levels::six_bit_scale<Isa, 2 * b + 1>(unit.scales_l, unit.scales_h)};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq4Ks> : PackedTraits<BlockIq4Ks, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq4Ks>> {
    struct Unit {
        uint8_t scales[8][Isa::kLanes];
        uint8_t qs[kUnitBlocks][4][Isa::kLanes][4];
    };
    TSR_FIELDS(scales, qs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for (int b = 0; b < kUnitBlocks; ++b) {
            const auto shift = Isa::template where_bit<0>(Isa::widen_u8(unit.scales[b]), kIq4kShift);
            typename Isa::Bytes codes[8];
            nibble_codes<Isa>(unit.qs[b], codes);
            for (auto& c : codes) c = Isa::add_bytes(Isa::lookup16(kIq4Values, c), shift);
            const typename Isa::Floats scale[1] = {levels::odd_scale<Isa>(unit.scales[b], row_scale)};
            sink(b, codes, scale, scale);
        }
    }
};

// The words of blocks as they are.
template <class Isa>
struct PackedWeight<Isa, BlockIq4Kss> : PackedTraits<BlockIq4Kss, Arithmetic{.groups = 1, .is_signed = true}>,
                                        PackedByFields<PackedWeight<Isa, BlockIq4Kss>> {
    struct Unit {
        uint8_t qs[kUnitBlocks][4][Isa::kLanes][4];
    };
    TSR_FIELDS(qs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            // The even bits of the scale in the lower half of a lane, the odd ones in the upper.
            auto bits = Isa::zero();
            for_each_of<4>([&]<int s>() {
                const auto words = Isa::load(unit.qs[b][s]);
                bits = Isa::either(bits, Isa::template lanes_shifted_left<2 * s>(Isa::masked(words, 0x00010001u)));
                const auto upper = Isa::masked(words, 0xFFFEFFFEu);
                const auto both =
                    Isa::differing(upper, Isa::masked(Isa::template lanes_shifted_right<1>(upper), 0x7FFF7FFFu));
                codes[s] = Isa::template shifted_right<0>(both, 15);
                codes[s + 4] = Isa::template shifted_right<4>(both, 15);
            });
            const auto scale_bits = Isa::either(bits, Isa::template lanes_shifted_right<15>(bits));
            const auto shift = Isa::template where_bit<0>(scale_bits, kIq4kShift);
            for (auto& c : codes) c = Isa::add_bytes(Isa::lookup16(kIq4Values, c), shift);
            const typename Isa::Floats scale[1] = {
                Isa::multiply(row_scale, Isa::to_floats(Isa::plus(Isa::masked(scale_bits, 254), -127)))};
            sink(b, codes, scale, scale);
        }
    }
};

namespace levels {
alignas(16) inline constexpr auto kIq2klFirst = with_centre(formats::kIq2klFirst, kIq3kCentre);
alignas(16) inline constexpr auto kIq2klSecond = with_centre(formats::kIq2klSecond, kIq3kCentre);
}  // namespace levels

template <class Isa>
struct PackedWeight<Isa, BlockIq2Kl>
    : PackedTraits<BlockIq2Kl, Arithmetic{.groups = 1, .parts = 4, .centre = levels::kIq3kCentre}>,
      PackedByFields<PackedWeight<Isa, BlockIq2Kl>> {
    struct Unit {
        uint16_t scales_h[Isa::kLanes];
        uint8_t scales_l[4][Isa::kLanes];
        uint8_t qs[4][4][Isa::kLanes][4];
        uint8_t qh[4][Isa::kLanes][4];
    };
    TSR_FIELDS(scales_h, scales_l, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        const auto d_32 = Isa::multiply(row_scale, Isa::splat(-32.0f));
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int t = 0; t < 4; ++t) {
                const auto low = Isa::template shifted_right<4 * (b % 2)>(Isa::load(unit.qs[b / 2][t]), 15);
                const auto pairs = levels::with_bit<Isa, b, 4>(low, unit.qh, t);
                Isa::lookup32_pairs(levels::kIq2klFirst.data(), levels::kIq2klSecond.data(), pairs, codes[2 * t],
                                    codes[2 * t + 1]);
            }
            const typename Isa::Floats scale[1] = {
                Isa::fma(row_scale, Isa::or_shifted(unit.scales_l[b % 4], 4 * (b / 4), unit.scales_h, 2 * b), d_32)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq5K> : PackedTraits<BlockIq5K, Arithmetic{.groups = 2, .is_signed = true}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq5K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t extra[Isa::kLanes];
        uint8_t scales_h[4][Isa::kLanes];
        uint8_t scales_l[8][Isa::kLanes];
        uint8_t qs[4][8][Isa::kLanes][4];
        uint8_t qh[8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, extra, scales_h, scales_l, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto extra = Isa::widen_u16(unit.extra);
        for_each_of<kUnitBlocks>([&]<int b>() {
            const typename Isa::Bytes shift[2] = {Isa::template where_bit<2 * b>(extra, kIq5kShift),
                                                  Isa::template where_bit<2 * b + 1>(extra, kIq5kShift)};
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto code = levels::with_bit<Isa, b, 4>(levels::wide_nibble<Isa, b>(unit.qs, s), unit.qh, s);
                codes[s] = Isa::add_bytes(Isa::lookup32(kIq5kValues, code), shift[s / 4]);
            }
            const typename Isa::Ints scale[2] = {levels::six_bit_scale<Isa, 2 * b>(unit.scales_l, unit.scales_h),
                                                 levels::six_bit_scale<Isa, 2 * b + 1>(unit.scales_l, unit.scales_h)};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq5Ks> : PackedTraits<BlockIq5Ks, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq5Ks>> {
    struct Unit {
        uint8_t scales[8][Isa::kLanes];
        uint8_t qs[4][8][Isa::kLanes][4];
        uint8_t qh[8][Isa::kLanes][4];
    };
    TSR_FIELDS(scales, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for_each_of<kUnitBlocks>([&]<int b>() {
            const auto shift = Isa::template where_bit<0>(Isa::widen_u8(unit.scales[b]), kIq5kShift);
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto code = levels::with_bit<Isa, b, 4>(levels::wide_nibble<Isa, b>(unit.qs, s), unit.qh, s);
                codes[s] = Isa::add_bytes(Isa::lookup32(kIq5kValues, code), shift);
            }
            const typename Isa::Floats scale[1] = {levels::odd_scale<Isa>(unit.scales[b], row_scale)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq6K> : PackedTraits<BlockIq6K, Arithmetic{.groups = 2, .is_signed = true}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq6K>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t extra[Isa::kLanes];
        int8_t scales[16][Isa::kLanes];
        uint8_t qs[4][8][Isa::kLanes][4];
        uint8_t qh[2][8][Isa::kLanes][4];
    };
    TSR_FIELDS(d, extra, scales, qs, qh)
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::from_f16(unit.d)};
        const auto extra = Isa::widen_u16(unit.extra);
        for_each_of<kUnitBlocks>([&]<int b>() {
            const typename Isa::Bytes shift[2] = {Isa::template where_bit<2 * b>(extra, kIq6kShift),
                                                  Isa::template where_bit<2 * b + 1>(extra, kIq6kShift)};
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto high = Isa::template shifted_left<4>(levels::two_bits<Isa, b>(unit.qh, s), 48);
                const auto code = Isa::either(levels::wide_nibble<Isa, b>(unit.qs, s), high);
                codes[s] = Isa::add_bytes(Isa::lookup64(kIq6kValues, code), shift[s / 4]);
            }
            const typename Isa::Ints scale[2] = {Isa::both_halves(Isa::widen_s8(unit.scales[2 * b])),
                                                 Isa::both_halves(Isa::widen_s8(unit.scales[2 * b + 1]))};
            sink(b, codes, scale, factor);
        });
    }
};

}  // namespace tessera::x86
