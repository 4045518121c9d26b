// Products of a packed weight with many rows: bound by arithmetic.
//
// A panel of two groups of weight rows is decoded once into the first-level cache and met with all rows of a batch,
// four at a time. Per 32 elements and four rows that is 64 multiplications, 64 additions and 8 * (convert, scale, add)
// against 20 loads, which two multipliers and four adders of a Zen 3 share evenly.
#pragma once

#include <tessera/cpu/matmul/activations.hpp>
#include <tessera/cpu/matmul/dot.hpp>

#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

inline constexpr int kPanelGroups = 2;  // groups of weight rows in a panel
inline constexpr int kPanelElements =
    1024;                               // of a row in a panel: 18 KiB of codes and scales, of 32 KiB first-level cache
inline constexpr int kBatchRows = 120;  // rows met with one panel before the next: their codes stay in the second level

// 32 elements of a panel, decoded.
template <class Isa, class Format>
struct alignas(64) PanelBlock {
    static constexpr int kMinimumGroups = Format::kHasMinimum ? Format::kGroups : 0;
    uint8_t codes[8][kPanelGroups][4 * Isa::kLanes];
    float scale[Format::kGroups][kPanelGroups][Isa::kLanes];
    float minimum[kMinimumGroups + (kMinimumGroups == 0)][kPanelGroups][Isa::kLanes];
};

template <class Isa, class Format>
inline constexpr size_t kPanelBytes = sizeof(PanelBlock<Isa, Format>) * (kPanelElements / 32);

// Decodes `units` units of one group into place `g` of the panel.
template <class Isa, class Format>
inline void decode_panel(const typename Format::Unit* group, int64_t units, int g,
                         PanelBlock<Isa, Format>* panel) noexcept {
    for (int64_t u = 0; u < units; ++u) {
        Format::visit(group[u], [&](int b, const auto& codes, const auto* scale, const auto* minimum) {
            PanelBlock<Isa, Format>& block = panel[u * Format::kBlocks + b];
            for (int s = 0; s < 8; ++s) Isa::store(block.codes[s][g], codes[s]);
            for (int i = 0; i < Format::kGroups; ++i) {
                Isa::store_floats(block.scale[i][g], scale[i]);
                if constexpr (Format::kHasMinimum) Isa::store_floats(block.minimum[i][g], minimum[i]);
            }
        });
    }
}

// sums[row][group][lane] += panel . tile, over `blocks` blocks of 32.
template <class Isa, class Format, int kRows, int kUsedGroups>
inline void multiply_panel(const PanelBlock<Isa, Format>* panel, int64_t blocks,
                           const ActivationBlock<kRows, Format::kGroups>* tile,
                           float (*sums)[kPanelGroups][Isa::kLanes]) noexcept {
    using Floats = typename Isa::Floats;
    constexpr int kSteps = 8 / Format::kGroups;
    for (int64_t b = 0; b < blocks; ++b) {
        const PanelBlock<Isa, Format>& block = panel[b];
        const ActivationBlock<kRows, Format::kGroups>& columns = tile[b];
        Floats parts[kRows][kUsedGroups];
        for (int i = 0; i < Format::kGroups; ++i) {
            typename Isa::Sums partial[kRows][kUsedGroups];
            for (int row = 0; row < kRows; ++row) {
                for (auto& p : partial[row]) {
                    if constexpr (Format::kSigned)
                        p = Isa::zero();
                    else
                        p = Isa::start(columns.start[i][row]);
                }
            }
#pragma GCC unroll 8
            for (int s = i * kSteps; s < (i + 1) * kSteps; ++s) {
                for (int row = 0; row < kRows; ++row) {
                    const auto activation = Isa::broadcast4(columns.codes[s][row]);
                    for (int g = 0; g < kUsedGroups; ++g) {
                        const auto weight = Isa::load(block.codes[s][g]);
                        if constexpr (Format::kSigned)
                            partial[row][g] = Isa::dot_signed(partial[row][g], weight, activation);
                        else
                            partial[row][g] = Isa::dot(partial[row][g], weight, activation);
                    }
                }
            }
            for (int row = 0; row < kRows; ++row) {
                for (int g = 0; g < kUsedGroups; ++g) {
                    Floats total;
                    if constexpr (Format::kSigned)
                        total = Isa::to_floats(partial[row][g]);
                    else
                        total = Isa::to_floats(Isa::total(partial[row][g]));
                    const Floats scale = Isa::load_floats(block.scale[i][g]);
                    if constexpr (kAddedAtOnce<Format>) {
                        const Floats both = Isa::multiply(scale, Isa::broadcast(&columns.scale[row]));
                        Isa::store_floats(sums[row][g], Isa::fma(total, both, Isa::load_floats(sums[row][g])));
                    } else {
                        Floats minimum = scale;
                        if constexpr (Format::kHasMinimum) minimum = Isa::load_floats(block.minimum[i][g]);
                        parts[row][g] =
                            add_group<Isa, Format, kRows>(parts[row][g], total, scale, minimum, columns, i, row);
                        if (i == Format::kGroups - 1) {
                            Isa::store_floats(sums[row][g], Isa::add(Isa::load_floats(sums[row][g]), parts[row][g]));
                        }
                    }
                }
            }
        }
    }
}

}  // namespace tessera::cpu
