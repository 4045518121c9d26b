// Weights of the formats of 256 elements as the integer kernels read them; see packed.hpp for the idea and the
// contract.
//
// The small integer scales of a super-block keep their bits. They are turned to floats once a unit: scale and minimum
// of a group are then what they are in the formats of 32, with one or two groups in each 32 elements.
#pragma once

#include <tessera/cpu/matmul/packed.hpp>

namespace tessera::cpu {

inline constexpr int kUnitBlocks = kSuperBlock / 32;

// A word of eight equal bytes.
constexpr uint64_t every_byte(uint64_t byte) noexcept {
    return byte * 0x0101010101010101u;
}

// q4_K and q5_K keep 6-bit scales and minima of eight groups in 12 bytes of a row.
template <int kLanes>
struct PackedScaleMin {
    uint8_t bytes[12][kLanes];

    void pack(int lane, const uint8_t* scales) noexcept {
        for (int i = 0; i < 12; ++i) bytes[i][lane] = scales[i];
    }
    void unpack(int lane, uint8_t* scales) const noexcept {
        for (int i = 0; i < 12; ++i) scales[i] = bytes[i][lane];
    }
    // The scales, then the minima, of the eight groups: a byte a lane, a word of eight lanes at a time.
    void spread(uint64_t (&scale)[8], uint64_t (&minimum)[8]) const noexcept {
        static_assert(kLanes == 8);
        uint64_t packed[12];
        std::memcpy(packed, bytes, sizeof packed);
        for (int j = 0; j < 4; ++j) {
            scale[j] = packed[j] & every_byte(63);
            minimum[j] = packed[j + 4] & every_byte(63);
            scale[j + 4] = (packed[j + 8] & every_byte(15)) | (packed[j] >> 2 & every_byte(48));
            minimum[j + 4] = (packed[j + 8] >> 4 & every_byte(15)) | (packed[j + 4] >> 2 & every_byte(48));
        }
    }
};

// q4_K: nibbles of 64 elements lie in 32 bytes: the low ones of the first block of 32, the high ones of the second.
template <class Isa>
struct WeightQ4K {
    using Block = BlockQ4K;
    static constexpr tsr_type kType = TSR_TYPE_Q4_K;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = false, kHasMinimum = true;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        PackedScaleMin<Isa::kLanes> scales;
        uint8_t qs[4][8][Isa::kLanes][4];  // [64 elements][step]
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.dmin[lane] = block.dmin;
        unit.scales.pack(lane, block.scales);
        for (int i = 0; i < 32; ++i) move4(unit.qs[i / 8][i % 8][lane], block.qs + 4 * i);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.dmin = unit.dmin[lane];
        unit.scales.unpack(lane, block.scales);
        for (int i = 0; i < 32; ++i) move4(block.qs + 4 * i, unit.qs[i / 8][i % 8][lane]);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        uint64_t scales[8], minima[8];
        unit.scales.spread(scales, minima);
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
struct WeightQ5K {
    using Block = BlockQ5K;
    static constexpr tsr_type kType = TSR_TYPE_Q5_K;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 1, kCentre = 16;
    static constexpr bool kSigned = false, kHasMinimum = true;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        PackedScaleMin<Isa::kLanes> scales;
        uint8_t qh[8][Isa::kLanes][4];
        uint8_t qs[4][8][Isa::kLanes][4];
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.dmin[lane] = block.dmin;
        unit.scales.pack(lane, block.scales);
        for (int i = 0; i < 8; ++i) move4(unit.qh[i][lane], block.qh + 4 * i);
        for (int i = 0; i < 32; ++i) move4(unit.qs[i / 8][i % 8][lane], block.qs + 4 * i);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.dmin = unit.dmin[lane];
        unit.scales.unpack(lane, block.scales);
        for (int i = 0; i < 8; ++i) move4(block.qh + 4 * i, unit.qh[i][lane]);
        for (int i = 0; i < 32; ++i) move4(block.qs + 4 * i, unit.qs[i / 8][i % 8][lane]);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        uint64_t scales[8], minima[8];
        unit.scales.spread(scales, minima);
        const auto d = Isa::from_f16(unit.d);
        const auto dmin = Isa::from_f16(unit.dmin);
        const auto part = [&]<int b>() {
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
        };
        part.template operator()<0>();
        part.template operator()<1>();
        part.template operator()<2>();
        part.template operator()<3>();
        part.template operator()<4>();
        part.template operator()<5>();
        part.template operator()<6>();
        part.template operator()<7>();
    }
};

// q2_K: two bits; of 128 elements in 32 bytes, block b (0..3) in bits 2 b. Scale and minimum of four bits for 16
// elements.
template <class Isa>
struct WeightQ2K {
    using Block = BlockQ2K;
    static constexpr tsr_type kType = TSR_TYPE_Q2_K;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 2, kCentre = 0;
    static constexpr bool kSigned = false, kHasMinimum = true;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t dmin[Isa::kLanes];
        uint8_t scales[16][Isa::kLanes];
        uint8_t qs[2][8][Isa::kLanes][4];  // [128 elements][step]
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.dmin[lane] = block.dmin;
        for (int i = 0; i < 16; ++i) unit.scales[i][lane] = block.scales[i];
        for (int i = 0; i < 16; ++i) move4(unit.qs[i / 8][i % 8][lane], block.qs + 4 * i);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.dmin = unit.dmin[lane];
        for (int i = 0; i < 16; ++i) block.scales[i] = unit.scales[i][lane];
        for (int i = 0; i < 16; ++i) move4(block.qs + 4 * i, unit.qs[i / 8][i % 8][lane]);
    }
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
struct WeightQ3K {
    using Block = BlockQ3K;
    static constexpr tsr_type kType = TSR_TYPE_Q3_K;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 2, kCentre = 4;
    static constexpr bool kSigned = false, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t scales[12][Isa::kLanes];
        uint8_t hmask[8][Isa::kLanes][4];
        uint8_t qs[2][8][Isa::kLanes][4];
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        for (int i = 0; i < 12; ++i) unit.scales[i][lane] = block.scales[i];
        for (int i = 0; i < 8; ++i) move4(unit.hmask[i][lane], block.hmask + 4 * i);
        for (int i = 0; i < 16; ++i) move4(unit.qs[i / 8][i % 8][lane], block.qs + 4 * i);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        for (int i = 0; i < 12; ++i) block.scales[i] = unit.scales[i][lane];
        for (int i = 0; i < 8; ++i) move4(block.hmask + 4 * i, unit.hmask[i][lane]);
        for (int i = 0; i < 16; ++i) move4(block.qs + 4 * i, unit.qs[i / 8][i % 8][lane]);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        // Scale g has its low nibble in byte g % 8, its upper bits in byte 8 + g % 4.
        const auto d_32 = Isa::multiply(Isa::from_f16(unit.d), Isa::splat(-32.0f));
        const auto scale_of = [&]<int g>(auto d) {
            const auto low = Isa::template bits_of_u8 < g < 8 ? 0 : 4, 4 > (unit.scales[g % 8]);
            const auto high = Isa::template bits_of_u8<2 * (g / 4), 2>(unit.scales[8 + g % 4]);
            return Isa::fma(d, Isa::nibble_above(high, low), d_32);
        };
        const auto d = Isa::from_f16(unit.d);
        const auto part = [&]<int b>() {
            typename Isa::Bytes codes[8];
            for (int s = 0; s < 8; ++s) {
                const auto low = Isa::template shifted_right<2 * (b % 4)>(Isa::load(unit.qs[b / 4][s]), 3);
                const auto high = Isa::load(unit.hmask[s]);
                if constexpr (b < 3)
                    codes[s] = Isa::either(low, Isa::template shifted_left<2 - b>(high, 4));
                else
                    codes[s] = Isa::either(low, Isa::template shifted_right<b - 2>(high, 4));
            }
            const typename Isa::Floats scale[2] = {scale_of.template operator()<2 * b>(d),
                                                   scale_of.template operator()<2 * b + 1>(d)};
            sink(b, codes, scale, scale);
        };
        part.template operator()<0>();
        part.template operator()<1>();
        part.template operator()<2>();
        part.template operator()<3>();
        part.template operator()<4>();
        part.template operator()<5>();
        part.template operator()<6>();
        part.template operator()<7>();
    }
};

// q6_K: of 128 elements, nibbles in 64 bytes (blocks 0 and 1 low, 2 and 3 high) and two bits in 32 (block b in bits 2
// b); signed bytes as scales of 16 elements.
template <class Isa>
struct WeightQ6K {
    using Block = BlockQ6K;
    static constexpr tsr_type kType = TSR_TYPE_Q6_K;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 2, kCentre = 32;
    static constexpr bool kSigned = false, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        int8_t scales[16][Isa::kLanes];
        uint8_t qh[2][8][Isa::kLanes][4];     // [128 elements][step]
        uint8_t ql[2][2][8][Isa::kLanes][4];  // [128 elements][block % 2][step]
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        for (int i = 0; i < 16; ++i) unit.scales[i][lane] = block.scales[i];
        for (int i = 0; i < 16; ++i) move4(unit.qh[i / 8][i % 8][lane], block.qh + 4 * i);
        for (int i = 0; i < 32; ++i) move4(unit.ql[i / 16][i / 8 % 2][i % 8][lane], block.ql + 4 * i);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        for (int i = 0; i < 16; ++i) block.scales[i] = unit.scales[i][lane];
        for (int i = 0; i < 16; ++i) move4(block.qh + 4 * i, unit.qh[i / 8][i % 8][lane]);
        for (int i = 0; i < 32; ++i) move4(block.ql + 4 * i, unit.ql[i / 16][i / 8 % 2][i % 8][lane]);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
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
            const typename Isa::Floats scale[2] = {Isa::multiply(d, Isa::from_s8(unit.scales[g])),
                                                   Isa::multiply(d, Isa::from_s8(unit.scales[g + 1]))};
            sink(4 * half + b, codes, scale, scale);
        };
        for (int half = 0; half < 2; ++half) {
            part.template operator()<0>(half);
            part.template operator()<1>(half);
            part.template operator()<2>(half);
            part.template operator()<3>(half);
        }
    }
};

// iq4_xs: blocks of iq4_nl with signed six-bit scales.
template <class Isa>
struct WeightIq4Xs {
    using Block = BlockIq4Xs;
    static constexpr tsr_type kType = TSR_TYPE_IQ4_XS;
    static constexpr int kBlocks = kUnitBlocks, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = true, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t scales_h[Isa::kLanes];
        uint8_t scales_l[4][Isa::kLanes];
        PackedNibbles<Isa::kLanes> qs[kUnitBlocks];
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.scales_h[lane] = block.scales_h;
        for (int i = 0; i < 4; ++i) unit.scales_l[i][lane] = block.scales_l[i];
        for (int b = 0; b < kUnitBlocks; ++b) unit.qs[b].pack(lane, block.qs + 16 * b);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.scales_h = unit.scales_h[lane];
        for (int i = 0; i < 4; ++i) block.scales_l[i] = unit.scales_l[i][lane];
        for (int b = 0; b < kUnitBlocks; ++b) unit.qs[b].unpack(lane, block.qs + 16 * b);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        const auto d = Isa::from_f16(unit.d);
        const auto d_32 = Isa::multiply(d, Isa::splat(-32.0f));
        for (int b = 0; b < kUnitBlocks; ++b) {
            typename Isa::Bytes codes[8];
            unit.qs[b].template codes<Isa>(codes);
            for (auto& c : codes) c = Isa::lookup16(kIq4Values, c);
            const auto six = Isa::or_shifted(unit.scales_l[b / 2], 4 * (b % 2), unit.scales_h, 2 * b);
            const typename Isa::Floats scale[1] = {Isa::fma(d, six, d_32)};
            sink(b, codes, scale, scale);
        }
    }
};

}  // namespace tessera::cpu
