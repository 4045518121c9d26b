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

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace tessera::cpu_x86 {

inline constexpr int kPairGroups = 2;      // groups of weight rows side by side in a panel
inline constexpr int kMaxPanelGroups = 4;  // groups of a panel: one pair, or two
inline constexpr int kPanelBlocks = 32;    // of 32 elements and a pair: 18 KiB, of 32 KiB first-level cache
inline constexpr int kBatchRows =
    120;  // rows multiplied with one panel before the next: their codes stay in the second level

// What the arithmetic of a product depends on.
enum class CodeKind { kUnsigned, kUnsignedWithMinimum, kSigned, kSmallSigned };
template <int kGroupsOfBlock, CodeKind kKind>
struct PanelShape {
    static constexpr int kGroups = kGroupsOfBlock;
    static constexpr bool kHasMinimum = kKind == CodeKind::kUnsignedWithMinimum;
    static constexpr bool kSmall = kKind == CodeKind::kSmallSigned, kSigned = kSmall || kKind == CodeKind::kSigned;
    static constexpr int kIndex = 4 * (kGroups - 1) + static_cast<int>(kKind);
};
inline constexpr int kPanelShapes = 8;
template <int kIndex>
using PanelShapeAt = PanelShape<kIndex / 4 + 1, static_cast<CodeKind>(kIndex % 4)>;
template <class Format>
inline constexpr CodeKind kCodeKind = Format::kSmall        ? CodeKind::kSmallSigned
                                      : Format::kSigned     ? CodeKind::kSigned
                                      : Format::kHasMinimum ? CodeKind::kUnsignedWithMinimum
                                                            : CodeKind::kUnsigned;
template <class Format>
using PanelShapeOf = PanelShape<Format::kGroups, kCodeKind<Format>>;

// Steps that are multiplied together: sums of small signed codes stay in 16 bits for two, where a policy has use for
// that.
template <class Isa, class Shape>
inline constexpr int kAtOnce = 1;
template <class Isa, class Shape>
requires(Shape::kSmall) && requires {
    &Isa::dot_two_small;
}
inline constexpr int kAtOnce<Isa, Shape> = 2;

// 32 elements of a pair of groups of kLanes rows, decoded.
template <int kLanes, class Shape>
struct alignas(64) PanelBlock {
    static constexpr int kMinimumGroups = Shape::kHasMinimum ? Shape::kGroups : 0;
    uint8_t codes[8][kPairGroups * kLanes][4];
    float scale[Shape::kGroups][kPairGroups * kLanes];
    float minimum[kMinimumGroups + (kMinimumGroups == 0)][kPairGroups * kLanes];
};

// Decodes `units` units of one group (row_scale: see visit_unit) into place `g` of a panel of `pairs` pairs:
// panel[block * pairs + pair].
template <class Isa, class Format>
inline void decode_panel(const typename Format::Unit* group, int64_t units, typename Isa::Floats row_scale, int g,
                         int pairs, PanelBlock<Isa::kLanes, PanelShapeOf<Format>>* panel) noexcept {
    const int at = g % kPairGroups * Isa::kLanes;
    panel += g / kPairGroups;
    for (int64_t u = 0; u < units; ++u) {
        visit_unit<Format>(group[u], row_scale, [&](int b, const auto& codes, const auto* scale, const auto* minimum) {
            auto& block = panel[(u * Format::kBlocks + b) * pairs];
            for (int s = 0; s < 8; ++s) Isa::store(block.codes[s][at], codes[s]);
            for (int i = 0; i < Format::kGroups; ++i) {
                Isa::store_floats(block.scale[i] + at, scale[i]);
                if constexpr (Format::kHasMinimum) Isa::store_floats(block.minimum[i] + at, minimum[i]);
            }
        });
    }
}

// sums[row][lane of the panel] += panel . tile, over `blocks` blocks of 32. Isa: of the product; its vectors cover the
// groups of a panel, kVectors of them are looked at. Lanes of groups that are not there are multiplied too, whatever
// is in their place; their sums are not used.
template <class Isa, class Shape, int kRows, int kVectors>
inline void multiply_panel(const void* panel_data, int64_t blocks, const void* tile_data, float* sums) noexcept {
    using Floats = typename Isa::Floats;
    constexpr int kPairLanes = kPairGroups * Isa::kGroupLanes;
    constexpr int kPairs = Isa::kPanelGroups / kPairGroups, kSteps = 8 / Shape::kGroups;
    static_assert(kPairLanes % Isa::kLanes == 0 && kVectors * Isa::kLanes <= kPairs * kPairLanes);
    const auto* panel = static_cast<const PanelBlock<Isa::kGroupLanes, Shape>*>(panel_data);
    const auto* tile = static_cast<const ActivationBlock<kRows, Shape::kGroups>*>(tile_data);
    const auto sums_at = [&](int row, int v) { return sums + row * kPairs * kPairLanes + v * Isa::kLanes; };
    for (int64_t b = 0; b < blocks; ++b, panel += kPairs) {
        const ActivationBlock<kRows, Shape::kGroups>& columns = tile[b];
        const auto pair_of = [&](int v) -> const auto& {
            return panel[v * Isa::kLanes / kPairLanes];
        };
        const auto lane_of = [](int v) { return v * Isa::kLanes % kPairLanes; };
        Floats parts[kRows][kVectors];
        for (int i = 0; i < Shape::kGroups; ++i) {
            typename Isa::Sums partial[kRows][kVectors];
            for (int row = 0; row < kRows; ++row) {
                for (auto& p : partial[row]) {
                    if constexpr (Shape::kSigned)
                        p = Isa::start_signed(columns.start[i][row]);
                    else
                        p = Isa::start(columns.start[i][row]);
                }
            }
#pragma GCC unroll 8
            for (int s = i * kSteps; s < (i + 1) * kSteps; s += kAtOnce<Isa, Shape>) {
                for (int row = 0; row < kRows; ++row) {
                    const auto activation = Isa::broadcast4(columns.codes[s][row]);
                    for (int v = 0; v < kVectors; ++v) {
                        const auto weight = Isa::load(pair_of(v).codes[s][lane_of(v)]);
                        auto& sum = partial[row][v];
                        if constexpr (kAtOnce<Isa, Shape> == 2)
                            sum = Isa::dot_two_small(sum, weight, activation,
                                                     Isa::load(pair_of(v).codes[s + 1][lane_of(v)]),
                                                     Isa::broadcast4(columns.codes[s + 1][row]));
                        else if constexpr (Shape::kSigned)
                            sum = Isa::dot_signed(sum, weight, activation);
                        else
                            sum = Isa::dot(sum, weight, activation);
                    }
                }
            }
            for (int row = 0; row < kRows; ++row) {
                for (int v = 0; v < kVectors; ++v) {
                    Floats total;
                    if constexpr (Shape::kSigned)
                        total = Isa::to_floats(partial[row][v]);
                    else
                        total = Isa::to_floats(Isa::total(partial[row][v]));
                    const Floats scale = Isa::load_floats(pair_of(v).scale[i] + lane_of(v));
                    float* to = sums_at(row, v);
                    if constexpr (kAddedAtOnce<Shape>) {
                        const Floats both = Isa::multiply(scale, Isa::broadcast(&columns.scale[row]));
                        Isa::store_floats(to, Isa::fma(total, both, Isa::load_floats(to)));
                    } else {
                        Floats minimum = scale;
                        if constexpr (Shape::kHasMinimum)
                            minimum = Isa::load_floats(pair_of(v).minimum[i] + lane_of(v));
                        parts[row][v] = add_group<Isa, Shape>(parts[row][v], total, scale, minimum, columns, i, row);
                        if (i == Shape::kGroups - 1) {
                            Isa::store_floats(to, Isa::add(Isa::load_floats(to), parts[row][v]));
                        }
                    }
                }
            }
        }
    }
}

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
    Multiply multiply[kPanelShapes];
};

// The products of one vector unit.
struct PanelTable {
    // As multiply_panel.
    using Multiply = void (*)(const void* panel, int64_t blocks, const void* tile, float* sums) noexcept;
    int groups;                                     // of a panel
    int vector_groups;                              // that a vector covers
    Multiply multiply[kPanelShapes][kTileRows][2];  // [shape][rows - 1][vectors - 1]
    const TileUnit* tiles = nullptr;                // for more than kTileRows rows, where the system permits it

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
        : unit_(rows > kTileRows && panels.tiles && panels.tiles->permitted() ? panels.tiles : nullptr),
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
    PanelTable table{Isa::kPanelGroups, Isa::kLanes / Isa::kGroupLanes, {}, nullptr};
    const auto shape = [&]<int kShape, int... kRow>(std::integral_constant<int, kShape>,
                                                    std::integer_sequence<int, kRow...>) {
        using Shape = PanelShapeAt<kShape>;
        ((table.multiply[kShape][kRow][0] = multiply_panel<Isa, Shape, kRow + 1, 1>,
          table.multiply[kShape][kRow][1] = multiply_panel<Isa, Shape, kRow + 1, 2>),
         ...);
    };
    [&]<int... kShape>(std::integer_sequence<int, kShape...>) {
        (shape(std::integral_constant<int, kShape>{}, std::make_integer_sequence<int, kTileRows>{}), ...);
    }
    (std::make_integer_sequence<int, kPanelShapes>{});
    return table;
}

}  // namespace tessera::cpu_x86
