// Weights of the formats of 32 as the integer kernels read them: kLanes rows interleaved, in the bytes they had in the
// file.
//
// A group of kLanes rows is a sequence of units, each the blocks of one place in all its rows. Inside a unit every
// field of a block becomes a vector with one lane a row: "step" s of a block is a vector whose lane r holds the codes
// of elements 4 s .. 4 s + 3 of row r. A packed group takes exactly the bytes of its rows.
//
// Each format is a struct over the ISA policy: its unit, `pack` and `unpack` of one unit (exact, plain C++), and
// `visit`, which hands the unit's blocks of 32 elements one after another, decoded, to a sink:
//     sink(block, const Bytes (&codes)[8], const Floats (&scale)[kGroups], const Floats (&minimum)[kGroups])
// A weight is scale * (code - kCentre) + minimum; without kHasMinimum the minimum is not looked at. If kSigned, codes
// are signed and there is no centre.
#pragma once

#include <tessera/cpu/formats/blocks.hpp>
#include <tessera/cpu/formats/half.hpp>
#include <tessera/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::cpu {

// Moves four bytes: the grain of all packing.
inline void move4(void* to, const void* from) noexcept {
    std::memcpy(to, from, 4);
}

// The nibbles of a block of 32: vector s holds step s in its low nibbles and step s + 4 in its high ones.
template <int kLanes>
struct PackedNibbles {
    uint8_t bytes[4][kLanes][4];

    void pack(int lane, const uint8_t* qs) noexcept {
        for (int s = 0; s < 4; ++s) move4(bytes[s][lane], qs + 4 * s);
    }
    void unpack(int lane, uint8_t* qs) const noexcept {
        for (int s = 0; s < 4; ++s) move4(qs + 4 * s, bytes[s][lane]);
    }
    template <class Isa>
    void codes(typename Isa::Bytes (&out)[8]) const noexcept {
        for (int s = 0; s < 4; ++s) {
            const auto both = Isa::load(bytes[s]);
            out[s] = Isa::template shifted_right<0>(both, 15);
            out[s + 4] = Isa::template shifted_right<4>(both, 15);
        }
    }
};

template <class Isa>
struct WeightQ4_0 {
    using Block = BlockQ4_0;
    static constexpr tsr_type kType = TSR_TYPE_Q4_0;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = false, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        PackedNibbles<Isa::kLanes> qs;
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.qs.pack(lane, block.qs);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        unit.qs.unpack(lane, block.qs);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        unit.qs.template codes<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct WeightQ4_1 {
    using Block = BlockQ4_1;
    static constexpr tsr_type kType = TSR_TYPE_Q4_1;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = false, kHasMinimum = true;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t m[Isa::kLanes];
        PackedNibbles<Isa::kLanes> qs;
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.m[lane] = block.m;
        unit.qs.pack(lane, block.qs);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.m = unit.m[lane];
        unit.qs.unpack(lane, block.qs);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        unit.qs.template codes<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        const typename Isa::Floats minimum[1] = {Isa::fma(scale[0], Isa::splat(8.0f), Isa::from_f16(unit.m))};
        sink(0, codes, scale, minimum);
    }
};

// The fifth bits of a block of 32: bit s of byte i of a lane belongs to element 4 s + i.
template <int kLanes>
struct PackedFifthBits {
    uint8_t bytes[kLanes][4];

    void pack(int lane, const uint8_t* qh) noexcept {
        uint32_t word;
        std::memcpy(&word, qh, 4);
        for (int i = 0; i < 4; ++i) bytes[lane][i] = every_fourth_bit(word >> i);
    }
    // Bits 0, 4, .. 28 of a word.
    static uint8_t every_fourth_bit(uint32_t word) noexcept {
        word &= 0x11111111u;
        word = (word | word >> 3) & 0x03030303u;
        word = (word | word >> 6) & 0x000F000Fu;
        return static_cast<uint8_t>(word | word >> 12);
    }
    void unpack(int lane, uint8_t* qh) const noexcept {
        for (int i = 0; i < 4; ++i) qh[i] = 0;
        for (int i = 0; i < 4; ++i) {
            for (int s = 0; s < 8; ++s) qh[(4 * s + i) / 8] |= (bytes[lane][i] >> s & 1) << (4 * s + i) % 8;
        }
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
struct WeightQ5_0 {
    using Block = BlockQ5_0;
    static constexpr tsr_type kType = TSR_TYPE_Q5_0;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 16;
    static constexpr bool kSigned = false, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        PackedFifthBits<Isa::kLanes> qh;
        PackedNibbles<Isa::kLanes> qs;
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.qh.pack(lane, block.qh);
        unit.qs.pack(lane, block.qs);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        unit.qh.unpack(lane, block.qh);
        unit.qs.unpack(lane, block.qs);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        unit.qs.template codes<Isa>(codes);
        unit.qh.template add_to<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct WeightQ5_1 {
    using Block = BlockQ5_1;
    static constexpr tsr_type kType = TSR_TYPE_Q5_1;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 16;
    static constexpr bool kSigned = false, kHasMinimum = true;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint16_t m[Isa::kLanes];
        PackedFifthBits<Isa::kLanes> qh;
        PackedNibbles<Isa::kLanes> qs;
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.m[lane] = block.m;
        unit.qh.pack(lane, block.qh);
        unit.qs.pack(lane, block.qs);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        block.m = unit.m[lane];
        unit.qh.unpack(lane, block.qh);
        unit.qs.unpack(lane, block.qs);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        unit.qs.template codes<Isa>(codes);
        unit.qh.template add_to<Isa>(codes);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        const typename Isa::Floats minimum[1] = {Isa::fma(scale[0], Isa::splat(16.0f), Isa::from_f16(unit.m))};
        sink(0, codes, scale, minimum);
    }
};

template <class Isa>
struct WeightQ8_0 {
    using Block = BlockQ8_0;
    static constexpr tsr_type kType = TSR_TYPE_Q8_0;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = true, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        uint8_t qs[8][Isa::kLanes][4];
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        for (int s = 0; s < 8; ++s) move4(unit.qs[s][lane], block.qs + 4 * s);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        for (int s = 0; s < 8; ++s) move4(block.qs + 4 * s, unit.qs[s][lane]);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        for (int s = 0; s < 8; ++s) codes[s] = Isa::load(unit.qs[s]);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

template <class Isa>
struct WeightIq4Nl {
    using Block = BlockIq4Nl;
    static constexpr tsr_type kType = TSR_TYPE_IQ4_NL;
    static constexpr int kBlocks = 1, kGroups = 1, kCentre = 8;
    static constexpr bool kSigned = true, kHasMinimum = false;
    struct Unit {
        uint16_t d[Isa::kLanes];
        PackedNibbles<Isa::kLanes> qs;
    };
    static void pack(Unit& unit, int lane, const Block& block) noexcept {
        unit.d[lane] = block.d;
        unit.qs.pack(lane, block.qs);
    }
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        block.d = unit.d[lane];
        unit.qs.unpack(lane, block.qs);
    }
    template <class Sink>
    static void visit(const Unit& unit, Sink&& sink) noexcept {
        typename Isa::Bytes codes[8];
        unit.qs.template codes<Isa>(codes);
        for (auto& c : codes) c = Isa::lookup16(kIq4Values, c);
        const typename Isa::Floats scale[1] = {Isa::from_f16(unit.d)};
        sink(0, codes, scale, scale);
    }
};

}  // namespace tessera::cpu
