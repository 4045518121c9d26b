// Weights of iq1, iq2 and iq3 as the integer kernels read them; see packed.hpp for the idea and the contract.
//
// Memory holds what the file holds: entries of codebooks, a byte and some further bits each. An entry is looked up for
// the rows of a group at once (gather4); codebooks are kept so small that they stay in the first-level cache: four
// bytes an entry, those of eight elements with two codes a byte. Signs are laid out so that bit s of byte i of a row's
// 32-bit field belongs to element 4 s + i.
#pragma once

#include "../kit.hpp"
#include "fields.hpp"
#include "packed_super.hpp"

#include <tessera/cpu/formats.hpp>

namespace tessera::x86 {
namespace codebook {

// Entries of eight 2-bit codes: code i in byte i % 4 from bit kLow on, code i + 4 from bit kHigh on.
template <int kLow, int kHigh, size_t kCount>
constexpr std::array<uint32_t, kCount> pairs_of(const uint16_t (&grid)[kCount]) noexcept {
    std::array<uint32_t, kCount> table{};
    for (size_t e = 0; e < kCount; ++e) {
        for (int i = 0; i < 8; ++i) {
            table[e] |= static_cast<uint32_t>(grid[e] >> (2 * i) & 3) << (8 * (i % 4) + (i < 4 ? kLow : kHigh));
        }
    }
    return table;
}
// Entries of four 3-bit codes as bytes of their values.
template <size_t kCount, class ValueOf>
constexpr std::array<uint32_t, kCount> bytes_of(const uint16_t (&grid)[kCount], ValueOf&& value_of) noexcept {
    std::array<uint32_t, kCount> table{};
    for (size_t e = 0; e < kCount; ++e) {
        for (int i = 0; i < 4; ++i) {
            table[e] |= static_cast<uint32_t>(value_of(grid[e] >> (3 * i) & 7)) << (8 * i);
        }
    }
    return table;
}
alignas(64) inline constexpr auto kIq2Xxs = pairs_of<0, 4>(kIq2XxsGrid);
alignas(64) inline constexpr auto kIq2Xs = pairs_of<0, 4>(kIq2XsGrid);
alignas(64) inline constexpr auto kIq2S = pairs_of<0, 4>(kIq2SGrid);
alignas(64) inline constexpr auto kIq3Xxs = bytes_of(kIq3XxsGrid, [](int code) { return kIq3XxsValues[code]; });
alignas(64) inline constexpr auto kIq3S = bytes_of(kIq3SGrid, [](int code) { return 2 * code + 1; });
// Of iq1 times 8, so that shifts by 1/8 are whole.
alignas(64) inline constexpr auto kIq1 = pairs_of<3, 5>(kIq1Grid);
alignas(16) inline constexpr int8_t kIq2Magnitudes[16] = {8, 25, 43};

// ---- signs ----

// 32 bits of elements in their order, to a row's field, and back.
inline void put_signs(uint8_t (&field)[4], uint32_t bits) noexcept {
    bits = bytes_of_nibbles(bits);
    std::memcpy(field, &bits, sizeof field);
}
inline uint32_t take_signs(const uint8_t (&field)[4]) noexcept {
    uint32_t bits;
    std::memcpy(&bits, field, sizeof field);
    return nibbles_of_bytes(bits);
}

// Those of a super-block whose signs are four bytes a block of 32.
template <int kLanes>
struct AllSigns {
    uint8_t sign_fields[8][kLanes][4];

    void pack(int lane, const uint8_t* signs) noexcept {
        for (int b = 0; b < 8; ++b) {
            uint32_t bits;
            std::memcpy(&bits, signs + 4 * b, 4);
            put_signs(sign_fields[b][lane], bits);
        }
    }
    void unpack(int lane, uint8_t* signs) const noexcept {
        for (int b = 0; b < 8; ++b) {
            const uint32_t bits = take_signs(sign_fields[b][lane]);
            std::memcpy(signs + 4 * b, &bits, 4);
        }
    }
};

// Where eight signs have an even number of minuses, the last one's place (bit 2 g + 1 of byte 3) holds something else:
// bit g of `spare`.
inline void put_even_signs(uint8_t (&field)[4], uint32_t seven_each, uint32_t spare) noexcept {
    uint32_t bits = 0;
    for (int g = 0; g < 4; ++g) bits |= (seven_each >> (7 * g) & 127) << (8 * g) | (spare >> g & 1) << (8 * g + 7);
    put_signs(field, bits);
}
inline void take_even_signs(const uint8_t (&field)[4], uint32_t& seven_each, uint32_t& spare) noexcept {
    const uint32_t bits = take_signs(field);
    seven_each = spare = 0;
    for (int g = 0; g < 4; ++g) {
        seven_each |= (bits >> (8 * g) & 127) << (7 * g);
        spare |= (bits >> (8 * g + 7) & 1) << g;
    }
}
// All signs of such fields: the spare bits are replaced by the parity of the other seven.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Ints even_signs(typename Isa::Ints sign_fields) noexcept {
    auto folded = Isa::differing(sign_fields, Isa::template lanes_shifted_right<16>(sign_fields));
    folded = Isa::differing(folded, Isa::template lanes_shifted_right<8>(folded));
    folded = Isa::differing(folded, Isa::template lanes_shifted_right<1>(folded));
    return Isa::differing(sign_fields, Isa::template lanes_shifted_left<25>(Isa::masked(folded, 0x55)));
}
// The spare bits as a number.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Ints spare_bits(typename Isa::Ints sign_fields) noexcept {
    auto bits = Isa::masked(Isa::template lanes_shifted_right<25>(sign_fields), 0x55);
    bits = Isa::masked(Isa::either(bits, Isa::template lanes_shifted_right<1>(bits)), 0x33);
    return Isa::masked(Isa::either(bits, Isa::template lanes_shifted_right<2>(bits)), 15);
}

// 2 scale + 1.
template <class Isa>
[[gnu::always_inline]] inline typename Isa::Ints odd_scale(typename Isa::Ints scale) noexcept {
    return Isa::both_halves(Isa::plus(Isa::add_lanes(scale, scale), 1));
}

// ---- entries of eight elements ----

// Codes of group `g` of iq2: magnitudes with signs, and the centre.
inline constexpr int kIq2Centre = 43, kIq3XxsCentre = 62;  // the largest magnitudes
template <class Isa, int g>
[[gnu::always_inline]] inline void signed_codes(typename Isa::Bytes pairs, typename Isa::Bytes signs,
                                                typename Isa::Bytes (&codes)[8]) noexcept {
    const auto centre = Isa::splat(static_cast<uint8_t>(kIq2Centre));
    const auto low = Isa::lookup16(kIq2Magnitudes, Isa::template shifted_right<0>(pairs, 15));
    const auto high = Isa::lookup16(kIq2Magnitudes, Isa::template shifted_right<4>(pairs, 15));
    codes[2 * g] = Isa::add_bytes(Isa::template with_signs<2 * g>(low, signs), centre);
    codes[2 * g + 1] = Isa::add_bytes(Isa::template with_signs<2 * g + 1>(high, signs), centre);
}
// Codes of group `g` of iq1: 8 (code - 1) +- 1 + 16. `shift`: 9 where 1/8 is added, 7 where it is taken away.
inline constexpr int kIq1Centre = 16;
template <class Isa, int g>
[[gnu::always_inline]] inline void shifted_codes(typename Isa::Bytes pairs, typename Isa::Bytes shift,
                                                 typename Isa::Bytes (&codes)[8]) noexcept {
    codes[2 * g] = Isa::add_bytes(Isa::template shifted_right<0>(pairs, 24), shift);
    codes[2 * g + 1] = Isa::add_bytes(Isa::template shifted_right<2>(pairs, 24), shift);
}
// kBits bits of `sign_fields` from bit kFrom on, moved to bit 8: the upper bits of an entry.
template <class Isa, int kFrom, int kBits>
[[gnu::always_inline]] inline typename Isa::Ints upper_bits(typename Isa::Ints sign_fields) noexcept {
    constexpr uint32_t kMask = ((1u << kBits) - 1) << 8;
    if constexpr (kFrom < 8)
        return Isa::masked(Isa::template lanes_shifted_left<8 - kFrom>(sign_fields), kMask);
    else
        return Isa::masked(Isa::template lanes_shifted_right<kFrom - 8>(sign_fields), kMask);
}

// 32 elements of iq1_s from four entries and their qh.
template <class Isa, int kLanes>
[[gnu::always_inline]] inline typename Isa::Floats iq1s_block(const uint8_t (*entries)[kLanes], typename Isa::Ints qh,
                                                              typename Isa::Floats d,
                                                              typename Isa::Bytes (&codes)[8]) noexcept {
    const auto shift = Isa::subtract_bytes(Isa::splat(uint8_t{9}), Isa::template where_bit<15>(qh, 2));
    for_each_of<4>([&]<int g>() {
        const auto entry = Isa::either(Isa::widen_u8(entries[g]), upper_bits<Isa, 3 * g, 3>(qh));
        shifted_codes<Isa, g>(Isa::gather4(kIq1.data(), entry), shift, codes);
    });
    const auto eighth = Isa::multiply(d, Isa::splat(0.125f));
    return Isa::fma(Isa::template bits_of_lane_as_floats<12, 3>(qh), Isa::add(eighth, eighth), eighth);
}
// 32 elements of iq1_m.
template <class Isa, int kLanes>
[[gnu::always_inline]] inline void iq1m_block(const uint8_t (*entries)[kLanes], const uint8_t (*qh)[kLanes],
                                              typename Isa::Bytes (&codes)[8]) noexcept {
    for_each_of<4>([&]<int g>() {
        constexpr int kNibble = 4 * (g % 2);
        const auto nibbles = Isa::widen_u8(qh[g / 2]);
        const auto entry = Isa::either(Isa::widen_u8(entries[g]), upper_bits<Isa, kNibble, 3>(nibbles));
        const auto shift =
            Isa::subtract_bytes(Isa::splat(uint8_t{9}), Isa::template where_bit<kNibble + 3>(nibbles, 2));
        shifted_codes<Isa, g>(Isa::gather4(kIq1.data(), entry), shift, codes);
    });
}

}  // namespace codebook

template <class Isa>
struct PackedWeight<Isa, BlockIq2Xxs>
    : PackedTraits<BlockIq2Xxs, Arithmetic{.groups = 1, .parts = 4, .centre = codebook::kIq2Centre}> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        struct {
            uint8_t entries[4][Isa::kLanes];
            uint8_t sign_fields[Isa::kLanes][4];  // spare bits: the scale
        } parts[kUnitBlocks];
    };
    static void pack(Unit& unit, const IntoLanes<Isa, Block>& blocks) noexcept {
        for (int lane = 0; lane < Isa::kLanes; ++lane) pack_lane(unit, lane, *blocks.rows[lane]);
    }
    static void pack_lane(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        for (int b = 0; b < kUnitBlocks; ++b) {
            const uint32_t field = iq2xxs_field(block, b);
            for (int g = 0; g < 4; ++g) unit.parts[b].entries[g][lane] = block.qs[8 * b + g];
            codebook::put_even_signs(unit.parts[b].sign_fields[lane], field, field >> 28);
        }
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        for (int b = 0; b < kUnitBlocks; ++b) {
            uint32_t field, scale;
            codebook::take_even_signs(unit.parts[b].sign_fields[lane], field, scale);
            field |= scale << 28;
            for (int g = 0; g < 4; ++g) block.qs[8 * b + g] = unit.parts[b].entries[g][lane];
            std::memcpy(block.qs + 8 * b + 4, &field, 4);
        }
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d_4 = Isa::multiply(Isa::from_f16(unit.d), Isa::splat(0.25f));
        const auto d_8 = Isa::multiply(d_4, Isa::splat(0.5f));
        for (int b = 0; b < kUnitBlocks; ++b) {
            const auto& part = unit.parts[b];
            const auto sign_fields = Isa::load(part.sign_fields);
            const auto signs = codebook::even_signs<Isa>(sign_fields);
            typename Isa::Bytes codes[8];
            for_each_of<4>([&]<int g>() {
                const auto pairs = Isa::gather4(codebook::kIq2Xxs.data(), part.entries[g]);
                codebook::signed_codes<Isa, g>(pairs, signs, codes);
            });
            const typename Isa::Floats scale[1] = {
                Isa::fma(Isa::to_floats(codebook::spare_bits<Isa>(sign_fields)), d_4, d_8)};
            sink(b, codes, scale, scale);
        }
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq2Xs>
    : PackedTraits<BlockIq2Xs, Arithmetic{.groups = 2, .parts = 4, .centre = codebook::kIq2Centre}> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        struct {
            uint8_t entries[4][Isa::kLanes];
            uint8_t sign_fields[Isa::kLanes][4];  // spare bits: the ninth bits of the entries
        } parts[kUnitBlocks];
        uint8_t scales[8][Isa::kLanes];
    };
    static void pack(Unit& unit, const IntoLanes<Isa, Block>& blocks) noexcept {
        for (int lane = 0; lane < Isa::kLanes; ++lane) pack_lane(unit, lane, *blocks.rows[lane]);
    }
    static void pack_lane(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        for (int b = 0; b < kUnitBlocks; ++b) {
            uint32_t signs = 0, ninth = 0;
            for (int g = 0; g < 4; ++g) {
                const uint32_t q = block.qs[4 * b + g];
                unit.parts[b].entries[g][lane] = static_cast<uint8_t>(q);
                signs |= (q >> 9) << (7 * g);
                ninth |= (q >> 8 & 1) << g;
            }
            codebook::put_even_signs(unit.parts[b].sign_fields[lane], signs, ninth);
            unit.scales[b][lane] = block.scales[b];
        }
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        for (int b = 0; b < kUnitBlocks; ++b) {
            uint32_t signs, ninth;
            codebook::take_even_signs(unit.parts[b].sign_fields[lane], signs, ninth);
            for (int g = 0; g < 4; ++g) {
                block.qs[4 * b + g] = static_cast<uint16_t>(unit.parts[b].entries[g][lane] | (ninth >> g & 1) << 8 |
                                                            (signs >> (7 * g) & 127) << 9);
            }
            block.scales[b] = unit.scales[b][lane];
        }
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::multiply(Isa::from_f16(unit.d), Isa::splat(0.125f))};
        for (int b = 0; b < kUnitBlocks; ++b) {
            const auto& part = unit.parts[b];
            const auto sign_fields = Isa::load(part.sign_fields);
            const auto signs = codebook::even_signs<Isa>(sign_fields);
            typename Isa::Bytes codes[8];
            for_each_of<4>([&]<int g>() {
                const auto entry =
                    Isa::either(Isa::widen_u8(part.entries[g]), codebook::upper_bits<Isa, 25 + 2 * g, 1>(sign_fields));
                codebook::signed_codes<Isa, g>(Isa::gather4(codebook::kIq2Xs.data(), entry), signs, codes);
            });
            const typename Isa::Ints scale[2] = {
                codebook::odd_scale<Isa>(Isa::template bits_of_u8<0, 4>(unit.scales[b])),
                codebook::odd_scale<Isa>(Isa::template bits_of_u8<4, 4>(unit.scales[b]))};
            sink(b, codes, scale, factor);
        }
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq2S>
    : PackedTraits<BlockIq2S, Arithmetic{.groups = 2, .parts = 4, .centre = codebook::kIq2Centre}>,
      PackedByFields<PackedWeight<Isa, BlockIq2S>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t entries[32][Isa::kLanes];
        codebook::AllSigns<Isa::kLanes> signs;
        uint8_t qh[8][Isa::kLanes];
        uint8_t scales[8][Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.d, block.d);
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
        move(unit.signs, block.signs);
        move(unit.scales, block.scales);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const typename Isa::Floats factor[1] = {Isa::multiply(Isa::from_f16(unit.d), Isa::splat(0.125f))};
        for (int b = 0; b < kUnitBlocks; ++b) {
            const auto signs = Isa::load(unit.signs.sign_fields[b]);
            const auto high = Isa::widen_u8(unit.qh[b]);
            typename Isa::Bytes codes[8];
            for_each_of<4>([&]<int g>() {
                const auto entry =
                    Isa::either(Isa::widen_u8(unit.entries[4 * b + g]), codebook::upper_bits<Isa, 2 * g, 2>(high));
                codebook::signed_codes<Isa, g>(Isa::gather4(codebook::kIq2S.data(), entry), signs, codes);
            });
            const typename Isa::Ints scale[2] = {
                codebook::odd_scale<Isa>(Isa::template bits_of_u8<0, 4>(unit.scales[b])),
                codebook::odd_scale<Isa>(Isa::template bits_of_u8<4, 4>(unit.scales[b]))};
            sink(b, codes, scale, factor);
        }
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq3Xxs>
    : PackedTraits<BlockIq3Xxs, Arithmetic{.groups = 1, .parts = 4, .centre = codebook::kIq3XxsCentre}> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t entries[64][Isa::kLanes];
        uint8_t sign_fields[kUnitBlocks][Isa::kLanes][4];  // spare bits: the scale
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.d, block.d);
        move(unit.entries, block.qs);
    }
    static void pack(Unit& unit, const IntoLanes<Isa, Block>& blocks) noexcept {
        fields(blocks, unit, *blocks.rows[0]);
        for (int lane = 0; lane < Isa::kLanes; ++lane) {
            for (int b = 0; b < kUnitBlocks; ++b) {
                const uint32_t field = iq3xxs_field(*blocks.rows[lane], b);
                codebook::put_even_signs(unit.sign_fields[b][lane], field, field >> 28);
            }
        }
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        fields(FromLane{lane}, unit, block);
        for (int b = 0; b < kUnitBlocks; ++b) {
            uint32_t field, scale;
            codebook::take_even_signs(unit.sign_fields[b][lane], field, scale);
            field |= scale << 28;
            std::memcpy(block.fields + 4 * b, &field, 4);
        }
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d_2 = Isa::multiply(Isa::from_f16(unit.d), Isa::splat(0.5f));
        const auto d_4 = Isa::multiply(d_2, Isa::splat(0.5f));
        const auto centre = Isa::splat(static_cast<uint8_t>(kCentre));
        for (int b = 0; b < kUnitBlocks; ++b) {
            const auto sign_fields = Isa::load(unit.sign_fields[b]);
            const auto signs = codebook::even_signs<Isa>(sign_fields);
            typename Isa::Bytes codes[8];
            for_each_of<8>([&]<int s>() {
                const auto magnitudes = Isa::gather4(codebook::kIq3Xxs.data(), unit.entries[8 * b + s]);
                codes[s] = Isa::add_bytes(Isa::template with_signs<s>(magnitudes, signs), centre);
            });
            const typename Isa::Floats scale[1] = {
                Isa::fma(Isa::to_floats(codebook::spare_bits<Isa>(sign_fields)), d_2, d_4)};
            sink(b, codes, scale, scale);
        }
    }
};

// Magnitudes of at most 15 stay unsigned.
template <class Isa>
struct PackedWeight<Isa, BlockIq3S> : PackedTraits<BlockIq3S, Arithmetic{.groups = 1, .centre = 16}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq3S>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t entries[64][Isa::kLanes];
        uint8_t qh[8][Isa::kLanes];
        codebook::AllSigns<Isa::kLanes> signs;
        uint8_t scales[4][Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.d, block.d);
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
        move(unit.signs, block.signs);
        move(unit.scales, block.scales);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
        const auto d_2 = Isa::add(d, d);
        const auto centre = Isa::splat(static_cast<uint8_t>(kCentre));
        for_each_of<kUnitBlocks>([&]<int b>() {
            const auto signs = Isa::load(unit.signs.sign_fields[b]);
            const auto high = Isa::widen_u8(unit.qh[b]);
            typename Isa::Bytes codes[8];
            for_each_of<8>([&]<int s>() {
                const auto entry =
                    Isa::either(Isa::widen_u8(unit.entries[8 * b + s]), codebook::upper_bits<Isa, s, 1>(high));
                codes[s] = Isa::add_bytes(
                    Isa::template with_signs<s>(Isa::gather4(codebook::kIq3S.data(), entry), signs), centre);
            });
            const typename Isa::Floats scale[1] = {
                Isa::fma(Isa::template floats_of_u8<4 * (b % 2), 4>(unit.scales[b / 2]), d_2, d)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq1S> : PackedTraits<BlockIq1S, Arithmetic{.groups = 1, .centre = codebook::kIq1Centre}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq1S>> {
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t entries[32][Isa::kLanes];
        uint16_t qh[8][Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.d, block.d);
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            const typename Isa::Floats scale[1] = {
                codebook::iq1s_block<Isa>(unit.entries + 4 * b, Isa::widen_u16(unit.qh[b]), d, codes)};
            sink(b, codes, scale, scale);
        }
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq1M> : PackedTraits<BlockIq1M, Arithmetic{.groups = 2, .centre = codebook::kIq1Centre}>,
                                      PackedByFields<PackedWeight<Isa, BlockIq1M>> {
    struct Unit {
        uint8_t entries[32][Isa::kLanes];
        uint8_t qh[16][Isa::kLanes];
        uint16_t scales[4][Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
        move(unit.scales, block.scales);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Ints scales[4];
        for (int i = 0; i < 4; ++i) scales[i] = Isa::widen_u16(unit.scales[i]);
        const auto d_bits =
            Isa::either(Isa::either(Isa::template lanes_shifted_right<12>(scales[0]),
                                    Isa::masked(Isa::template lanes_shifted_right<8>(scales[1]), 0x00F0)),
                        Isa::either(Isa::masked(Isa::template lanes_shifted_right<4>(scales[2]), 0x0F00),
                                    Isa::masked(scales[3], 0xF000)));
        const typename Isa::Floats factor[1] = {Isa::multiply(Isa::from_f16_lanes(d_bits), Isa::splat(0.125f))};
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            codebook::iq1m_block<Isa>(unit.entries + 4 * b, unit.qh + 2 * b, codes);
            constexpr int kFirst = 6 * (b % 2);
            const typename Isa::Ints scale[2] = {
                codebook::odd_scale<Isa>(Isa::template bits_of_lane<kFirst, 3>(scales[b / 2])),
                codebook::odd_scale<Isa>(Isa::template bits_of_lane<kFirst + 3, 3>(scales[b / 2]))};
            sink(b, codes, scale, factor);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq1SRow>
    : PackedTraits<BlockIq1SRow, Arithmetic{.groups = 1, .centre = codebook::kIq1Centre}>,
      PackedByFields<PackedWeight<Isa, BlockIq1SRow>> {
    struct Unit {
        uint8_t entries[4][Isa::kLanes];
        uint16_t qh[Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
    }
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        const typename Isa::Floats scale[1] = {
            codebook::iq1s_block<Isa>(unit.entries, Isa::widen_u16(unit.qh), row_scale, codes)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq1MRow>
    : PackedTraits<BlockIq1MRow, Arithmetic{.groups = 2, .centre = codebook::kIq1Centre}>,
      PackedByFields<PackedWeight<Isa, BlockIq1MRow>> {
    struct Unit {
        uint8_t entries[4][Isa::kLanes];
        uint8_t qh[2][Isa::kLanes];
        uint8_t scales[Isa::kLanes];
    };
    template <class Move, class U, class B>
    static void fields(const Move& move, U& unit, B& block) noexcept {
        move(unit.entries, block.qs);
        move(unit.qh, block.qh);
        move(unit.scales, block.scales);
    }
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        codebook::iq1m_block<Isa>(unit.entries, unit.qh, codes);
        const typename Isa::Ints scale[2] = {Isa::both_halves(Isa::template bits_of_u8<0, 4>(unit.scales)),
                                             Isa::both_halves(Isa::template bits_of_u8<4, 4>(unit.scales))};
        const typename Isa::Floats factor[1] = {Isa::multiply(row_scale, Isa::splat(0.125f))};
        sink(0, codes, scale, factor);
    }
};

}  // namespace tessera::x86
