// Products of a decoded panel with many rows by tile registers (AMX).
//
// A scale belongs to 32 codes, so a tile's product sums 32 of them and no more, for 16 rows and 16 weight rows. The
// sums go to the first-level cache, and from there, in the order of dot.hpp, into f32 sums that stay in registers. That
// takes three vector operations for each 16 lanes of a block, 24 cycles on two units, where the product takes 16: the
// scales bound it. Three steps overlap: the product of one block, storing the one before, scaling the one before that.
//
// A panel's codes lie as the registers need them. Rows do not: codes of up to four are interleaved for the vectors, and
// are separated here for each panel, which is 8 % of the work. Registers multiply signed with signed bytes, so a centre
// is taken from a panel's codes beforehand, and sums start at zero.
#pragma once

#include "kernels/x86/kit.hpp"
#include "kernels/x86/matmul/dot.hpp"
#include "kernels/x86/matmul/gemm.hpp"
#include "kernels/x86/matmul/rows.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace tessera::x86 {

// One block of 32 elements of kTileRows rows of a tile register.
template <class Isa, class Shape>
struct alignas(64) SeparateRows {
    int8_t codes[Isa::kTileRows][32];
    float scale[Isa::kTileRows];
    float sum[Shape::kGroups][Isa::kTileRows];  // not looked at without minimum
};

template <class Isa, class Shape>
class TileProducts {
  public:
    static void multiply(void* panel, int64_t blocks, int used, int centre, const PanelRows& rows,
                         float* sums) noexcept {
        auto* codes = static_cast<Panel*>(panel);
        const int pairs = (used + kPairGroups - 1) / kPairGroups;
        if constexpr (!Shape::kSigned) subtract(codes, blocks, pairs, static_cast<int8_t>(centre));
        SeparateRows<Isa, Shape> separate[kBlocks];
        for (int64_t first = 0; first < rows.count; first += Isa::kTileRows) {
            const int64_t count = std::min<int64_t>(Isa::kTileRows, rows.count - first);
            if (count < Isa::kTileRows) std::memset(separate, 0, static_cast<size_t>(blocks) * sizeof *separate);
            for (int64_t row = 0; row < count; row += kFew) {
                const int64_t at = rows.first + first + row;
                with_width(std::min<int64_t>(kFew, rows.all.rows - at), [&]<int kRows>() {
                    copy_rows<kRows>(rows.all.tile<kRows, Shape::kDivision>(at) + rows.first_block, blocks, row,
                                     separate);
                });
            }
            for (int pair = 0; pair < pairs; ++pair) {
                float* to = sums + first * kPanelLanes + pair * Isa::kLanes;
                with_width((count + kFew - 1) / kFew,
                           [&]<int kFours>() { add<kFew * kFours>(codes + pair, blocks, separate, to); });
            }
        }
    }

  private:
    using Floats = typename Isa::Floats;
    using Panel = PanelBlock<Isa::kGroupLanes, Shape>;
    static constexpr int kFew = x86::kTileRows;
    static constexpr int kPairs = Isa::kPanelGroups / kPairGroups, kPanelLanes = kPairs * Isa::kLanes;
    static constexpr int kBlocks = kPanelBlocks / kPairs;
    static constexpr int kGroups = Shape::kGroups, kSteps = 8 / kGroups;
    static_assert(Isa::kLanes == kPairGroups * Isa::kGroupLanes && Isa::kTileRows == 4 * kFew);

    using Totals = int32_t[kGroups][Isa::kTileRows][Isa::kLanes];

    static void subtract(Panel* panel, int64_t blocks, int pairs, int8_t centre) noexcept {
        const auto all = Isa::splat(centre);
        for (int64_t b = 0; b < blocks; ++b, panel += kPairs) {
            for (int pair = 0; pair < pairs; ++pair) {
                for (auto& step : panel[pair].codes) Isa::store(step, Isa::subtract_bytes(Isa::load(step), all));
            }
        }
    }

    // Puts kRows rows of a tile at `row` of each block.
    template <int kRows>
    static void copy_rows(const ActivationBlock<kRows, Shape::kDivision>* from, int64_t blocks, int64_t row,
                          SeparateRows<Isa, Shape>* to) noexcept {
        for (int64_t b = 0; b < blocks; ++b) {
            if constexpr (kRows == kFew) {
                Isa::separate_rows(&from[b].codes[0][0][0], to[b].codes[row]);
            } else {
                for (int r = 0; r < kRows; ++r) {
                    for (int s = 0; s < 8; ++s) std::memcpy(to[b].codes[row + r] + 4 * s, from[b].codes[s][r], 4);
                }
            }
            std::memcpy(to[b].scale + row, from[b].scale, sizeof from[b].scale);
            for (int g = 0; g < kGroups && Shape::kHasMinimum; ++g) {
                std::memcpy(to[b].sum[g] + row, from[b].sum[g], sizeof from[b].sum[g]);
            }
        }
    }

    // sums[row * kPanelLanes + lane] += one pair of the panel . kRows rows.
    template <int kRows>
    static void add(const Panel* panel, int64_t blocks, const SeparateRows<Isa, Shape>* rows, float* sums) noexcept {
        Floats running[kRows];
        for (int row = 0; row < kRows; ++row) running[row] = Isa::load_floats(sums + row * kPanelLanes);
        alignas(64) Totals totals[Isa::kSets];
        const auto step = [&]<int kSet>(int64_t i) __attribute__((always_inline)) {
            constexpr int kOther = 1 - kSet;
            if (i < blocks)
                each_group([&]<int kGroup>() __attribute__((always_inline)) {
                    Isa::template multiply_tile<kGroups, kSet, kGroup>(rows[i].codes[0] + 4 * kSteps * kGroup,
                                                                       panel[i * kPairs].codes[kSteps * kGroup][0]);
                });
            if (i > 0 && i <= blocks)
                each_group([&]<int kGroup>() __attribute__((always_inline)) {
                    Isa::template store_sums<kOther, kGroup>(totals[kOther][kGroup][0]);
                });
            if (i > 1) scale<kRows>(panel[(i - 2) * kPairs], rows[i - 2], totals[kSet], running);
        };
        for (int64_t i = 0; i < blocks + 2; i += 2) {
            step.template operator()<0>(i);
            if (i + 1 < blocks + 2) step.template operator()<1>(i + 1);
        }
        for (int row = 0; row < kRows; ++row) Isa::store_floats(sums + row * kPanelLanes, running[row]);
    }

    // One block's sums of kRows rows, scaled and added.
    template <int kRows>
    [[gnu::always_inline]] static void scale(const Panel& panel, const SeparateRows<Isa, Shape>& rows,
                                             const Totals& totals, Floats (&running)[kRows]) noexcept {
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
            if constexpr (Shape::kHasMinimum) {
                Floats part = running[row];  // not read
                for (int g = 0; g < kGroups; ++g) {
                    part = add_group<Isa>(part, Isa::to_floats(Isa::load(totals[g][row])),
                                          Isa::load_floats(panel.scale[g]),
                                          Isa::load_floats(panel.minimum_or_factor[g]), rows, g, row);
                }
                running[row] = Isa::add(running[row], part);
            } else if constexpr (kWholeScales<Shape>) {
                auto total = Isa::load(totals[0][row]);
                for (int g = 0; g < kGroups; ++g)
                    total = add_part<Isa, Shape>(total, Isa::load(totals[g][row]), Isa::load(panel.scale[g]), g);
                running[row] = add_at_once<Isa>(running[row], total, Isa::load_floats(panel.minimum_or_factor[0]),
                                                rows.scale[row]);
            } else {
                running[row] = add_at_once<Isa>(running[row], Isa::load(totals[0][row]),
                                                Isa::load_floats(panel.scale[0]), rows.scale[row]);
            }
        }
    }

    template <class F>
    [[gnu::always_inline]] static void each_group(F&& f) noexcept {
        f.template operator()<0>();
        if constexpr (kGroups == 2) f.template operator()<1>();
    }
};

template <class Isa>
constexpr TileUnit make_tile_unit() noexcept {
    TileUnit unit{Isa::permitted, Isa::configure, Isa::release, {}};
    [&]<int... kShape>(std::integer_sequence<int, kShape...>) {
        const auto shape = [&]<int kAt>(std::integral_constant<int, kAt>) {
            if constexpr (kTakesTiles<PanelShapeAt<kAt>>)
                unit.multiply[kAt] = TileProducts<Isa, PanelShapeAt<kAt>>::multiply;
        };
        (shape(std::integral_constant<int, kShape>{}), ...);
    }
    (std::make_integer_sequence<int, kPanelShapes>{});
    return unit;
}

}  // namespace tessera::x86
