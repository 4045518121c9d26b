// Products of a packed weight with one to four rows: bound by how fast the weights arrive.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"
#include "dot.hpp"

#include <cstddef>
#include <cstdint>

namespace tessera::x86 {

// How far ahead of its reads a kernel prefetches weights: about what one core has in flight at 30 GB/s and 130 ns.
// Twice as much changes nothing, half costs a core that can read so fast 4 % of it.
inline constexpr size_t kPrefetchBytes = 4096;

// sums[row][lane] += product of `units` units of one packed group with the kRows rows of a tile.
template <class Isa, class Format, int kRows>
inline void gemv_group(const typename Format::Unit* group, int64_t units, typename Isa::Floats row_scale,
                       const ActivationBlock<kRows, Format::kDivision>* activations,
                       float (*sums)[Isa::kLanes]) noexcept {
    typename Isa::Floats running[kRows];
    for (int row = 0; row < kRows; ++row) running[row] = Isa::load_floats(sums[row]);
    for (int64_t u = 0; u < units; ++u) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(group + u);
        for (size_t line = 0; line < sizeof(*group); line += 64) Isa::prefetch(bytes + kPrefetchBytes + line);
        visit_unit<Format>(
            group[u], row_scale, [&](int b, const auto& codes, const auto* scale, const auto* minimum_or_factor) {
                const auto& block = activations[u * Format::kBlocks + b];
                for (int row = 0; row < kRows; ++row) {
                    running[row] =
                        add_block<Isa, Format, kRows>(running[row], codes, scale, minimum_or_factor, block, row);
                }
            });
    }
    for (int row = 0; row < kRows; ++row) Isa::store_floats(sums[row], running[row]);
}

}  // namespace tessera::x86
