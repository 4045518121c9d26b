// How the fields of blocks become the vectors of a unit (packed.hpp), and back, without code for each format.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"

#include <tessera/types.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tessera::x86 {

// Bytes of a field that stay together: the four of a step where its innermost extent is 4, else one element.
template <class Field>
inline constexpr size_t kGrain = std::extent_v<Field, std::rank_v<Field> - 1> == 4
                                     ? 4
                                     : sizeof(std::remove_all_extents_t<Field>);

// Moves a field of the blocks of neighbouring rows to the lanes of the unit's field, which has one for each row; a
// field that is a struct has its own functions (pack, unpack). The move is called with the first row's block; the
// others' fields lie where its fields do.
template <class Isa, class Block>
struct IntoLanes {
    const Block* rows[Isa::kLanes];

    template <class Field, class BlockField>
    void operator()(Field& unit, const BlockField& first) const noexcept {
        if constexpr (requires { unit.pack(0, first); }) {
            for (int lane = 0; lane < Isa::kLanes; ++lane) unit.pack(lane, field<BlockField>(first, lane));
        } else {
            constexpr size_t kBytes = kGrain<Field>;
            static_assert(sizeof(unit) == Isa::kLanes * sizeof(first));
            const unsigned char* from[Isa::kLanes];
            for (int lane = 0; lane < Isa::kLanes; ++lane)
                from[lane] = reinterpret_cast<const unsigned char*>(&field<BlockField>(first, lane));
            Isa::template interleave<kBytes, sizeof(first)>(from, reinterpret_cast<unsigned char*>(&unit));
        }
    }

  private:
    template <class BlockField>
    const BlockField& field(const BlockField& first, int lane) const noexcept {
        const auto offset =
            reinterpret_cast<const unsigned char*>(&first) - reinterpret_cast<const unsigned char*>(rows[0]);
        return *reinterpret_cast<const BlockField*>(reinterpret_cast<const unsigned char*>(rows[lane]) + offset);
    }
};

// Moves a lane of the unit's field back to a block.
struct FromLane {
    int lane;
    template <class Field, class BlockField>
    void operator()(const Field& unit, BlockField& block) const noexcept {
        if constexpr (requires { unit.unpack(lane, block); }) {
            unit.unpack(lane, block);
        } else {
            constexpr size_t kBytes = kGrain<Field>, kLanes = sizeof(unit) / sizeof(block);
            const auto* from = reinterpret_cast<const unsigned char*>(&unit) + static_cast<size_t>(lane) * kBytes;
            auto* to = reinterpret_cast<unsigned char*>(&block);
            for (size_t i = 0; i < sizeof(block) / kBytes; ++i) {
                std::memcpy(to + i * kBytes, from + i * kLanes * kBytes, kBytes);
            }
        }
    }
};

// pack and unpack of a format whose function `fields(move, unit, block)` calls move(unit.field, block.field) for each.
template <class Format>
struct PackedByFields {
    template <class Isa, class Unit, class Block>
    static void pack(Unit& unit, const IntoLanes<Isa, Block>& blocks) noexcept {
        Format::fields(blocks, unit, *blocks.rows[0]);
    }
    template <class Unit, class Block>
    static void unpack(const Unit& unit, int lane, Block& block) noexcept {
        Format::fields(FromLane{lane}, unit, block);
    }
};

// That function of a format whose unit and block have fields of the same names, up to eight.
#define TSR_FIELDS(...)                                                                   \
    template <class Move, class U, class B>                                               \
    static void fields(const Move& move, U& unit, B& block) noexcept {                    \
        TSR_FIELDS_TWICE(TSR_FIELDS_TWICE(TSR_FIELDS_TWICE(TSR_MOVE_FIELD(__VA_ARGS__)))) \
    }
#define TSR_FIELDS_TWICE(...) TSR_FIELDS_ONCE(TSR_FIELDS_ONCE(__VA_ARGS__))
#define TSR_FIELDS_ONCE(...) __VA_ARGS__
#define TSR_MOVE_FIELD(field, ...) \
    move(unit.field, block.field); \
    __VA_OPT__(TSR_MOVE_NEXT_FIELD TSR_NO_ARGUMENTS(__VA_ARGS__))
#define TSR_MOVE_NEXT_FIELD() TSR_MOVE_FIELD
#define TSR_NO_ARGUMENTS ()

// How a format's codes are multiplied (packed.hpp).
struct Arithmetic {
    int groups;  // scales of 32 elements: 1 or 2
    // Whose sums fit 16 bits: 1 for levels of at most 16 after the centre is taken, 2 for 32, 4 for 64.
    int parts = groups;
    int centre = 8;  // what is taken from an unsigned code; signed ones have none, and name what AVX-512 starts from
    bool is_signed = false;
    bool has_minimum = false;
};

// What the loops ask of a format.
template <class BlockType, Arithmetic kArithmetic>
struct PackedTraits {
    using Block = BlockType;
    static constexpr tsr_type kType = Block::kType;
    static constexpr int kBlocks = Block::kElements / 32;  // of 32 elements, in a unit
    static constexpr int kGroups = kArithmetic.groups, kParts = kArithmetic.parts, kCentre = kArithmetic.centre;
    static constexpr bool kSigned = kArithmetic.is_signed, kHasMinimum = kArithmetic.has_minimum;
    static constexpr Division kDivision{kGroups, kParts};
};

// A format as the integer kernels read it (packed.hpp).
template <class Isa, class Block>
struct PackedWeight;

// f.template operator()<0>() .. <kCount - 1>().
template <int kCount, class F>
[[gnu::always_inline]] inline void for_each_of(F&& f) {
    [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) __attribute__((always_inline)) {
        (f.template operator()<kIndex>(), ...);
    }
    (std::make_integer_sequence<int, kCount>{});
}

}  // namespace tessera::x86
