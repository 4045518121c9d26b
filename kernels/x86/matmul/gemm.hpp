// Products of a packed weight with many rows: bound by arithmetic.
//
// A panel of some groups of weight rows is decoded once into the first-level cache and multiplied with all rows of a
// batch, four at a time. On AVX2, per 32 elements, two groups and four rows, that is 64 multiplications, 64 additions
// and 8 * (convert, scale, add) against 20 loads, which two multipliers and four adders of a Zen 3 share evenly.
//
// Decoding belongs to a format and runs at the speed of memory; only the product gains from wider vectors. So panels
// have one layout for all vector units, pairs of adjacent groups, and products are a table: one for each shape of
// format, number of rows and number of vectors.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"
#include "dot.hpp"
#include "fields.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tessera::x86 {

inline constexpr int kPairGroups = 2;      // groups of weight rows side by side in a panel
inline constexpr int kMaxPanelGroups = 4;  // groups of a panel: one pair, or two
inline constexpr int kPanelBlocks = 32;    // of 32 elements and a pair: 18 to 22 KiB, of 32 of first-level cache
inline constexpr int kVectorRows = 48;     // that vectors multiply as fast as tile registers, or faster
inline constexpr int kBatchRows =
    120;  // rows multiplied with one panel before the next: their codes stay in the second level

// What the arithmetic of a product depends on. Wide codes are unsigned, and summed in four parts.
enum class CodeKind { kUnsigned, kUnsignedWithMinimum, kSigned, kWide };
template <int kGroupsOfBlock, CodeKind kKind>
struct PanelShape {
    static constexpr int kGroups = kGroupsOfBlock, kParts = kKind == CodeKind::kWide ? 4 : kGroups;
    static constexpr Division kDivision{kGroups, kParts};
    static constexpr bool kHasMinimum = kKind == CodeKind::kUnsignedWithMinimum;
    static constexpr bool kSigned = kKind == CodeKind::kSigned;
    static constexpr int kIndex = 4 * (kGroups - 1) + static_cast<int>(kKind);
};
inline constexpr int kPanelShapes = 8;
template <int kIndex>
using PanelShapeAt = PanelShape<kIndex / 4 + 1, static_cast<CodeKind>(kIndex % 4)>;
template <class Format>
inline constexpr CodeKind kCodeKind = Format::kSigned       ? CodeKind::kSigned
                                      : Format::kHasMinimum ? CodeKind::kUnsignedWithMinimum
                                      : Format::kParts == 4 ? CodeKind::kWide
                                                            : CodeKind::kUnsigned;
template <class Format>
using PanelShapeOf = PanelShape<Format::kGroups, kCodeKind<Format>>;

// Whether tile registers are faster than vectors. Where a block of 32 has two scales, a register multiplies 16 elements
// at once, half of what it could: on a Xeon (bench_matmul 1 512) vectors took 0.93 of the time that tiles took then,
// and 1.12 of it else.
template <class Shape>
inline constexpr bool kTakesTiles = Shape::kGroups == 1;

// 32 elements of a pair of groups of kLanes rows, decoded.
template <int kLanes, class Shape>
struct alignas(64) PanelBlock {
    uint8_t codes[8][kPairGroups * kLanes][4];
    std::conditional_t<kWholeScales<Shape>, int32_t, float> scale[Shape::kGroups][kPairGroups * kLanes];
    float minimum_or_factor[Shape::kHasMinimum ? Shape::kGroups : 1][kPairGroups * kLanes];
};

// Decodes `units` units of one group (row_scale: see visit_unit) into place `g` of a panel of `pairs` pairs:
// panel[block * pairs + pair].
template <class Isa, class Format>
inline void decode_panel(const typename Format::Unit* group, int64_t units, typename Isa::Floats row_scale, int g,
                         int pairs, PanelBlock<Isa::kLanes, PanelShapeOf<Format>>* panel) noexcept {
    const int at = g % kPairGroups * Isa::kLanes;
    panel += g / kPairGroups;
    for (int64_t u = 0; u < units; ++u) {
        const auto store = [&](int b, const auto& codes, const auto* scale, const auto* minimum_or_factor) {
            auto& block = panel[(u * Format::kBlocks + b) * pairs];
            for (int s = 0; s < 8; ++s) Isa::store(block.codes[s][at], codes[s]);
            for (int i = 0; i < Format::kGroups; ++i) {
                if constexpr (kWholeScales<Format>)
                    Isa::store(block.scale[i] + at, scale[i]);
                else
                    Isa::store_floats(block.scale[i] + at, scale[i]);
            }
            constexpr int kMore = Format::kHasMinimum ? Format::kGroups : kWholeScales<Format> ? 1 : 0;
            for (int i = 0; i < kMore; ++i) Isa::store_floats(block.minimum_or_factor[i] + at, minimum_or_factor[i]);
        };
        visit_unit<Format>(group[u], row_scale, store);
    }
}

// sums[row][lane of the panel] += panel . tile, over `blocks` blocks of 32. Isa: of the product; its vectors cover the
// groups of a panel, kVectors of them are looked at. Lanes of groups that are not there are multiplied too, whatever
// is in their place; their sums are not used.
template <class Isa, class Shape, int kRows, int kVectors>
class PanelProduct {
  public:
    static void multiply(const void* panel_data, int64_t blocks, const void* tile_data, float* sums) noexcept {
        const auto* panel = static_cast<const Panel*>(panel_data);
        const auto* columns = static_cast<const Columns*>(tile_data);
        for (int64_t b = 0; b < blocks; ++b, panel += kPairs, ++columns) {
            Ints total[kRows][kVectors];
            [[maybe_unused]] Floats part[kRows][kVectors];
            for_each_of<Shape::kGroups>([&]<int g>() __attribute__((always_inline)) {
                if constexpr (Shape::kSigned)
                    multiply_signed<g>(panel, *columns, total);
                else if constexpr (kPartSteps == 2)
                    multiply_short_parts<g>(panel, *columns, total);
                else
                    multiply_group<g>(panel, *columns, total);
                if constexpr (Shape::kHasMinimum) {
                    each([&](int row, int v) {
                        part[row][v] = add_group<Isa>(part[row][v], Isa::to_floats(total[row][v]),
                                                      floats(panel, &Panel::scale, g, v),
                                                      floats(panel, &Panel::minimum_or_factor, g, v), *columns, g, row);
                    });
                }
            });
            each([&](int row, int v) {
                float* to = sums + row * kPairs * kPairLanes + v * Isa::kLanes;
                Floats sum = Isa::load_floats(to);
                if constexpr (Shape::kHasMinimum)
                    sum = Isa::add(sum, part[row][v]);
                else if constexpr (kWholeScales<Shape>)
                    sum = add_at_once<Isa>(sum, total[row][v], floats(panel, &Panel::minimum_or_factor, 0, v),
                                           columns->scale[row]);
                else
                    sum = add_at_once<Isa>(sum, total[row][v], floats(panel, &Panel::scale, 0, v), columns->scale[row]);
                Isa::store_floats(to, sum);
            });
        }
    }

  private:
    using Ints = typename Isa::Ints;
    using Sums = typename Isa::Sums;
    using Floats = typename Isa::Floats;
    using Panel = PanelBlock<Isa::kGroupLanes, Shape>;
    using Columns = ActivationBlock<kRows, Shape::kDivision>;
    static constexpr int kPairLanes = kPairGroups * Isa::kGroupLanes, kPairs = Isa::kPanelGroups / kPairGroups;
    static constexpr int kSteps = 8 / Shape::kGroups;  // of a group
    static constexpr int kGroupParts = Shape::kParts / Shape::kGroups;
    static constexpr int kPartSteps = Isa::kShortSums ? kSteps / kGroupParts : kSteps;
    static_assert(kPairLanes % Isa::kLanes == 0 && kVectors * Isa::kLanes <= kPairs * kPairLanes);

    template <class F>
    [[gnu::always_inline]] static void each(F&& f) noexcept {
        for (int row = 0; row < kRows; ++row) {
            for (int v = 0; v < kVectors; ++v) f(row, v);
        }
    }
    [[gnu::always_inline]] static const Panel& pair_of(const Panel* panel, int v) noexcept {
        return panel[v * Isa::kLanes / kPairLanes];
    }
    static constexpr int lane_of(int v) noexcept { return v * Isa::kLanes % kPairLanes; }
    [[gnu::always_inline]] static auto weight(const Panel* panel, int s, int v) noexcept {
        return Isa::load(pair_of(panel, v).codes[s][lane_of(v)]);
    }
    [[gnu::always_inline]] static auto whole_scale(const Panel* panel, int g, int v) noexcept {
        return Isa::load(pair_of(panel, v).scale[g] + lane_of(v));
    }
    template <class Field>
    [[gnu::always_inline]] static Floats floats(const Panel* panel, Field field, int g, int v) noexcept {
        return Isa::load_floats((pair_of(panel, v).*field)[g] + lane_of(v));
    }
    [[gnu::always_inline]] static void take(const Panel* panel, int g, int p, int row, int v, Sums sums,
                                            Ints (&total)[kRows][kVectors]) noexcept {
        Ints scale = total[row][v];  // not read
        if constexpr (kWholeScales<Shape>) scale = whole_scale(panel, g, v);
        total[row][v] = add_part<Isa, Shape>(total[row][v], sums, scale, p);
    }

    template <int g>
    [[gnu::always_inline]] static void multiply_signed(const Panel* panel, const Columns& columns,
                                                       Ints (&total)[kRows][kVectors]) noexcept {
        Ints sums[kRows][kVectors];
        each([&](int row, int v) {
            if constexpr (kScaledSteps<Isa, Shape>)
                sums[row][v] = g == 0 ? Isa::zero() : total[row][v];
            else
                sums[row][v] = Isa::start_signed(columns.start[g][row]);
        });
#pragma GCC unroll 8
        for (int s = g * kSteps; s < (g + 1) * kSteps; ++s) {
            for (int row = 0; row < kRows; ++row) {
                const auto activation = Isa::broadcast4(columns.codes[s][row]);
                for (int v = 0; v < kVectors; ++v) {
                    Ints& sum = sums[row][v];
                    if constexpr (kScaledSteps<Isa, Shape>)
                        sum = Isa::dot_signed_scaled(sum, weight(panel, s, v), activation, whole_scale(panel, g, v));
                    else
                        sum = Isa::dot_signed(sum, weight(panel, s, v), activation);
                }
            }
        }
        each([&](int row, int v) {
            if constexpr (kWholeScales<Shape> && !kScaledSteps<Isa, Shape>)
                take(panel, g, g, row, v, sums[row][v], total);
            else
                total[row][v] = sums[row][v];
        });
    }

    // Parts of two steps: a sum is added to the total at once, and no register holds it for long.
    template <int g>
    [[gnu::always_inline]] static void multiply_short_parts(const Panel* panel, const Columns& columns,
                                                            Ints (&total)[kRows][kVectors]) noexcept {
#pragma GCC unroll 4
        for (int p = g * kGroupParts; p < (g + 1) * kGroupParts; ++p) {
            for (int row = 0; row < kRows; ++row) {
                const auto first = Isa::broadcast4(columns.codes[2 * p][row]);
                const auto second = Isa::broadcast4(columns.codes[2 * p + 1][row]);
                const Sums start = Isa::start(columns.start[p][row]);
                for (int v = 0; v < kVectors; ++v) {
                    const Sums sums =
                        Isa::dot(Isa::dot(start, weight(panel, 2 * p, v), first), weight(panel, 2 * p + 1, v), second);
                    take(panel, g, p, row, v, sums, total);
                }
            }
        }
    }

    // Sums of a whole group.
    template <int g>
    [[gnu::always_inline]] static void multiply_group(const Panel* panel, const Columns& columns,
                                                      Ints (&total)[kRows][kVectors]) noexcept {
        Sums sums[kRows][kVectors];
        for (int row = 0; row < kRows; ++row) {
            for (Sums& sum : sums[row]) {
                if constexpr (kGroupParts > 1)
                    sum = Isa::start_of_group(&columns.group_start[g][row]);
                else
                    sum = Isa::start(columns.start[g][row]);
            }
        }
#pragma GCC unroll 8
        for (int s = g * kSteps; s < (g + 1) * kSteps; ++s) {
            for (int row = 0; row < kRows; ++row) {
                const auto activation = Isa::broadcast4(columns.codes[s][row]);
                for (int v = 0; v < kVectors; ++v)
                    sums[row][v] = Isa::dot(sums[row][v], weight(panel, s, v), activation);
            }
        }
        each([&](int row, int v) { take(panel, g, g, row, v, sums[row][v], total); });
    }
};

struct PanelRows;

// The products of tile registers, which a thread has to configure before and to release after.
struct TileUnit {
    // sums[row][lane of the panel] += panel . rows; `centre` is taken from the panel's codes, in place. used: groups
    // of the panel that there are.
    using Multiply = void (*)(void* panel, int64_t blocks, int used, int centre, const PanelRows& rows,
                              float* sums) noexcept;
    bool (*permitted)() noexcept;  // by the system
    bool (*configure)() noexcept;  // false: this thread's are configured already
    void (*release)() noexcept;
    Multiply multiply[kPanelShapes];  // nullptr of shapes that do not take tiles
};

// The products of one vector unit.
struct PanelTable {
    // As PanelProduct::multiply.
    using Multiply = void (*)(const void* panel, int64_t blocks, const void* tile, float* sums) noexcept;
    int groups;                                     // of a panel
    int vector_groups;                              // that a vector covers
    Multiply multiply[kPanelShapes][kTileRows][2];  // [shape][rows - 1][vectors - 1]
    // Whether signed codes take no more instructions than unsigned ones, and so fewer than products without a panel.
    bool signed_alike;
    const TileUnit* tiles = nullptr;  // for more than kVectorRows rows, where the system permits it

    int pairs() const noexcept { return groups / kPairGroups; }
    int64_t elements() const noexcept { return 32 * (kPanelBlocks / pairs()); }
    // The product for `used` groups of a panel.
    Multiply find(int shape, int rows, int used) const noexcept {
        return multiply[shape][rows - 1][(used - 1) / vector_groups];
    }
};

// The tile registers of this thread, for as long as this lives. Inside of another one it costs next to nothing.
class TilesInUse {
  public:
    // For products of `rows` rows.
    TilesInUse(const PanelTable& panels, int64_t rows) noexcept
        : unit_(rows > kVectorRows && panels.tiles && panels.tiles->permitted() ? panels.tiles : nullptr),
          is_owner_(unit_ && unit_->configure()) {}
    ~TilesInUse() {
        if (is_owner_) unit_->release();
    }
    TilesInUse(const TilesInUse&) = delete;
    TilesInUse& operator=(const TilesInUse&) = delete;

    // nullptr: products are those of vectors.
    const TileUnit* unit() const noexcept { return unit_; }

  private:
    const TileUnit* unit_;
    bool is_owner_;
};

template <class Isa>
constexpr PanelTable make_panel_table() noexcept {
    static_assert(Isa::kPanelGroups <= kMaxPanelGroups && Isa::kPanelGroups * Isa::kGroupLanes == 2 * Isa::kLanes);
    PanelTable table{Isa::kPanelGroups, Isa::kLanes / Isa::kGroupLanes, {}, !Isa::kShortSums, nullptr};
    const auto shape = [&]<int kShape, int... kRow>(std::integral_constant<int, kShape>,
                                                    std::integer_sequence<int, kRow...>) {
        using Shape = PanelShapeAt<kShape>;
        ((table.multiply[kShape][kRow][0] = PanelProduct<Isa, Shape, kRow + 1, 1>::multiply,
          table.multiply[kShape][kRow][1] = PanelProduct<Isa, Shape, kRow + 1, 2>::multiply),
         ...);
    };
    [&]<int... kShape>(std::integer_sequence<int, kShape...>) {
        (shape(std::integral_constant<int, kShape>{}, std::make_integer_sequence<int, kTileRows>{}), ...);
    }
    (std::make_integer_sequence<int, kPanelShapes>{});
    return table;
}

}  // namespace tessera::x86
