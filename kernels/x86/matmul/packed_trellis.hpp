// Weights of the trellis formats as the integer kernels read them; see packed.hpp for the idea and the contract, and
// tessera/formats/trellis.hpp for the codes. A start of eight elements is two steps, one of four is one.
#pragma once

#include "../kit.hpp"
#include "fields.hpp"
#include "packed_super.hpp"

#include <tessera/cpu/formats.hpp>
#include <tessera/formats/trellis.hpp>

namespace tessera::x86 {
namespace trellis {

// Codes n .. n + 3 of the sequences that begin at `starts`, offset included.
template <class Isa, int n>
[[gnu::always_inline]] inline typename Isa::Bytes four_codes(typename Isa::Ints starts) noexcept {
    typename Isa::Bytes bits[4];
    for_each_of<4>([&]<int i>() {
        constexpr uint32_t kPower = formats::trellis_power(n + i);
        bits[i] = Isa::masked(Isa::multiply_lanes(starts, kPower), formats::kTrellisBits);
    });
    return Isa::subtract_bytes(Isa::sums_of_bytes(bits[0], bits[1], bits[2], bits[3]),
                               Isa::splat(static_cast<uint8_t>(formats::kTrellisCentre)));
}
// Starts without offset to the two steps of group g.
template <class Isa>
[[gnu::always_inline]] inline void eight_codes(typename Isa::Ints starts, int g,
                                               typename Isa::Bytes (&codes)[8]) noexcept {
    starts = Isa::plus(starts, static_cast<int>(formats::kTrellisOffset));
    codes[2 * g] = four_codes<Isa, 0>(starts);
    codes[2 * g + 1] = four_codes<Isa, 4>(starts);
}

// row scale * kIq4Values[nibble], the nibble at bit kShift of a byte.
template <class Isa, int kShift>
[[gnu::always_inline]] inline typename Isa::Floats level_scale(const uint8_t* bytes,
                                                               typename Isa::Floats row_scale) noexcept {
    const auto level = Isa::lookup16(kIq4Values, Isa::template bits_of_u8<kShift, 4>(bytes));
    const auto whole = Isa::to_floats(Isa::template lanes_shifted_left<24>(level));
    return Isa::multiply(row_scale, Isa::multiply(whole, Isa::splat(0x1p-24f)));
}

// The numbers of a PackedWeight of iq4_kt: the starts of a block, each with a bit of its head above it.
inline void iq4kt_words(const BlockIq4Kt& block, uint16_t (&words)[64]) noexcept {
    for (int b = 0; b < kUnitBlocks; ++b) {
        uint32_t head;
        std::memcpy(&head, block.heads[b], sizeof head);
        for (int half = 0; half < 2; ++half) {
            // Four numbers of three bits and four bits to 16 bits each.
            const uint64_t high = head >> (8 + 12 * half) & 0xFFF, bits = head >> (4 * half) & 15;
            const uint64_t numbers = (high & 7) | (high & 0x38) << 13 | (high & 0x1C0) << 26 | (high & 0xE00) << 39;
            const uint64_t tops = (bits & 1) | (bits & 2) << 15 | (bits & 4) << 30 | (bits & 8) << 45;
            const uint64_t four = numbers << 12 | tops << 15;
            std::memcpy(words + 8 * b + 4 * half, &four, sizeof four);
        }
    }
    for (int g = 0; g < 32; ++g) {
        words[g] = static_cast<uint16_t>(words[g] | block.ql[g] | (block.qh[g] & 15) << 8);
        words[g + 32] = static_cast<uint16_t>(words[g + 32] | block.ql[g + 32] | block.qh[g] >> 4 << 8);
    }
}

}  // namespace trellis

template <class Isa>
struct PackedWeight<Isa, BlockIq1Kt> : PackedTraits<BlockIq1Kt, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq1Kt>> {
    struct Unit {
        uint8_t sh[8][Isa::kLanes];
        uint8_t ql[32][Isa::kLanes];
        uint8_t qh[16][Isa::kLanes];
    };
    TSR_FIELDS(sh, ql, qh)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for_each_of<4>([&]<int g>() {
                const auto high = Isa::template bits_of_u8<4 * (b / 4), 4>(unit.qh[4 * (b % 4) + g]);
                const auto top = Isa::template bits_of_u8<4 + g, 1>(unit.sh[b]);
                const auto upper =
                    Isa::either(Isa::template lanes_shifted_left<8>(high), Isa::template lanes_shifted_left<12>(top));
                trellis::eight_codes<Isa>(Isa::either(Isa::widen_u8(unit.ql[4 * b + g]), upper), g, codes);
            });
            const typename Isa::Floats scale[1] = {trellis::level_scale<Isa, 0>(unit.sh[b], row_scale)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq2Kt> : PackedTraits<BlockIq2Kt, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq2Kt>> {
    struct Unit {
        uint8_t scales[4][Isa::kLanes];
        uint16_t starts[32][Isa::kLanes];
    };
    TSR_FIELDS(scales, starts)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int g = 0; g < 4; ++g) trellis::eight_codes<Isa>(Isa::widen_u16(unit.starts[4 * b + g]), g, codes);
            const typename Isa::Floats scale[1] = {
                trellis::level_scale<Isa, 4 * (b / 4)>(unit.scales[b % 4], row_scale)};
            sink(b, codes, scale, scale);
        });
    }
};

template <class Isa>
struct PackedWeight<Isa, BlockIq3Kt> : PackedTraits<BlockIq3Kt, Arithmetic{.groups = 1, .is_signed = true}>,
                                       PackedByFields<PackedWeight<Isa, BlockIq3Kt>> {
    struct Unit {
        uint8_t scales[4][Isa::kLanes];
        uint16_t starts[32][Isa::kLanes];
        uint8_t signs[8][Isa::kLanes][4];
    };
    TSR_FIELDS(scales, starts, signs)
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for_each_of<kUnitBlocks>([&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int g = 0; g < 4; ++g) trellis::eight_codes<Isa>(Isa::widen_u16(unit.starts[4 * b + g]), g, codes);
            for (int s = 0; s < 8; ++s)
                codes[s] = Isa::template with_signs<b>(Isa::magnitudes(codes[s]), Isa::load(unit.signs[s]));
            const typename Isa::Floats scale[1] = {
                Isa::multiply(row_scale, Isa::template floats_of_u8<4 * (b / 4), 4>(unit.scales[b % 4]))};
            sink(b, codes, scale, scale);
        });
    }
};

// A start of 15 bits and, above it, bit g of the first byte of the head for group g of a block of 32.
template <class Isa>
struct PackedWeight<Isa, BlockIq4Kt> : PackedTraits<BlockIq4Kt, Arithmetic{.groups = 1, .is_signed = true}> {
    struct Unit {
        uint16_t starts[kUnitBlocks][8][Isa::kLanes];
    };
    static void pack(Unit& unit, const IntoLanes<Isa, BlockIq4Kt>& blocks) noexcept {
        uint16_t starts[Isa::kLanes][64];
        const unsigned char* rows[Isa::kLanes];
        for (int lane = 0; lane < Isa::kLanes; ++lane) {
            trellis::iq4kt_words(*blocks.rows[lane], starts[lane]);
            rows[lane] = reinterpret_cast<const unsigned char*>(starts[lane]);
        }
        Isa::template interleave<2, sizeof starts[0]>(rows, reinterpret_cast<unsigned char*>(&unit.starts));
    }
    static void unpack(const Unit& unit, int lane, BlockIq4Kt& block) noexcept {
        block = {};
        for (int b = 0; b < kUnitBlocks; ++b) {
            uint32_t head = 0;
            for (int i = 0; i < 8; ++i) {
                const int g = 8 * b + i;
                const uint32_t start = unit.starts[b][i][lane];
                head |= start >> 15 << i | (start >> 12 & 7) << (8 + 3 * i);
                block.ql[g] = static_cast<uint8_t>(start);
                block.qh[g % 32] |= static_cast<uint8_t>((start >> 8 & 15) << (4 * (g / 32)));
            }
            std::memcpy(block.heads[b], &head, sizeof head);
        }
    }
    template <class Sink>
    static void visit(const Unit& unit, typename Isa::Floats row_scale, Sink&& sink) noexcept {
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            auto bits = Isa::zero();
            const auto set = Isa::masked(Isa::widen_u16(unit.starts[b][0]), 0x8000);
            const auto offset = Isa::plus(set, static_cast<int>(formats::kTrellisOffset));
            for_each_of<8>([&]<int s>() {
                const auto start = Isa::widen_u16(unit.starts[b][s]);
                bits = Isa::either(bits,
                                   Isa::template lanes_shifted_left<s>(Isa::template lanes_shifted_right<15>(start)));
                codes[s] = trellis::four_codes<Isa, 0>(Isa::add_lanes(Isa::masked(start, 0x7FFF), offset));
            });
            const auto whole = Isa::plus(Isa::template lanes_shifted_right<1>(bits), -64);
            const typename Isa::Floats scale[1] = {Isa::multiply(row_scale, Isa::to_floats(whole))};
            sink(b, codes, scale, scale);
        }
    }
};

}  // namespace tessera::x86
