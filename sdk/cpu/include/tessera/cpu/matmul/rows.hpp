// A span of packed weight groups times the rows of a batch: chooses between the two kernels by the number of rows.
#pragma once

#include <tessera/cpu/matmul/activations.hpp>
#include <tessera/cpu/matmul/gemm.hpp>
#include <tessera/cpu/matmul/gemv.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::cpu {

// Quantised rows: whole tiles of kTileRows, then one narrower tile of what is left.
struct ActivationRows {
    unsigned char* data;  // 64-byte aligned; activation_row_bytes() for each row
    int64_t rows;
    int64_t elements;  // of a row, a multiple of 32

    template <int kRows, int kGroups>
    ActivationBlock<kRows, kGroups>* tile(int64_t first_row) const noexcept {
        return reinterpret_cast<ActivationBlock<kRows, kGroups>*>(
            data + static_cast<size_t>(first_row * (elements / 32)) * kRowBlockBytes<kGroups>);
    }
};

// Calls f.template operator()<1 .. kTileRows>() for the width of a tile.
template <class F>
inline void with_width(int64_t width, F&& f) {
    switch (width) {
        case 1:
            f.template operator()<1>();
            break;
        case 2:
            f.template operator()<2>();
            break;
        case 3:
            f.template operator()<3>();
            break;
        default:
            f.template operator()<4>();
            break;
    }
}

// Quantises blocks [first_block, end_block) of row `row` of `to`. x: the elements of these blocks.
template <class Isa, int kGroups>
inline void quantize_into(const ActivationRows& to, int64_t row, const float* x, int centre, int64_t first_block,
                          int64_t end_block) noexcept {
    const int64_t first = row / kTileRows * kTileRows;
    with_width(std::min<int64_t>(kTileRows, to.rows - first), [&]<int kRows>() {
        quantize_row<Isa, kRows, kGroups>(x, 32 * (end_block - first_block), centre, static_cast<int>(row - first),
                                          to.tile<kRows, kGroups>(first) + first_block);
    });
}

// Rows of a weight matrix, in groups of kLanes. Packed groups take the bytes that their rows take in the canonical
// layout, so one stride serves both.
struct WeightRows {
    const unsigned char* data;
    int64_t row_bytes;  // between neighbouring canonical rows
    int64_t rows;
    bool packed;  // then rows are whole groups and follow each other
};

// What one worker needs beside its operands.
template <class Isa, class Format>
struct alignas(64) RowsScratch {
    static constexpr int64_t kUnits = kPanelElements / (32 * Format::kBlocks);

    PanelBlock<Isa, Format> panel[kPanelElements / 32];
    float sums[kBatchRows][kPanelGroups][Isa::kLanes];
    typename Format::Unit units[kUnits];  // of a canonical weight, packed when they are needed
};

// Packs units [first, first + count) of group `group` of a canonical weight. Lanes past the last row repeat it.
template <class Isa, class Format>
inline void pack_units(const WeightRows& weight, int64_t group, int64_t first, int64_t count,
                       typename Format::Unit* units) noexcept {
    using Block = typename Format::Block;
    const Block* rows[Isa::kLanes];
    for (int lane = 0; lane < Isa::kLanes; ++lane) {
        const int64_t row = std::min<int64_t>(group * Isa::kLanes + lane, weight.rows - 1);
        rows[lane] = reinterpret_cast<const Block*>(weight.data + row * weight.row_bytes) + first;
    }
    // Eight rows are eight streams, too many and too short for a prefetcher; the next group is asked for instead, in
    // the order of its bytes.
    const auto* next =
        weight.data + (group + 1) * Isa::kLanes * weight.row_bytes + first * static_cast<int64_t>(sizeof(*units));
    for (int64_t u = 0; u < count; ++u, next += sizeof(*units)) {
        for (size_t line = 0; line < sizeof(*units); line += 64) Isa::prefetch(next + line);
        for (int lane = 0; lane < Isa::kLanes; ++lane) Format::pack(units[u], lane, rows[lane][u]);
    }
}

// Units [first, first + count) of a group, where they lie or packed into the scratch. count <= RowsScratch::kUnits
// unless the weight is packed.
template <class Isa, class Format>
inline const typename Format::Unit* units_of(const WeightRows& weight, int64_t group, int64_t first, int64_t count,
                                             RowsScratch<Isa, Format>* scratch) noexcept {
    if (weight.packed) {
        const auto* at = weight.data + group * Isa::kLanes * weight.row_bytes;
        return reinterpret_cast<const typename Format::Unit*>(at) + first;
    }
    pack_units<Isa, Format>(weight, group, first, count, scratch->units);
    return scratch->units;
}

// Groups [begin, end) of a weight times all rows of `x`. Hands out kLanes neighbouring results at a time:
// emit(row, group, const float* lanes). `scratch` is the worker's own.
template <class Isa, class Format, class Emit>
inline void multiply_rows(const WeightRows& weight, int64_t begin, int64_t end, const ActivationRows& x,
                          RowsScratch<Isa, Format>* scratch, Emit&& emit) noexcept {
    constexpr int64_t kUnits = RowsScratch<Isa, Format>::kUnits;
    const int64_t units = x.elements / (32 * Format::kBlocks);
    if (x.rows <= kTileRows) {
        const int64_t step = weight.packed ? units : kUnits;
        with_width(x.rows, [&]<int kRows>() {
            for (int64_t g = begin; g < end; ++g) {
                alignas(64) float sums[kRows][Isa::kLanes] = {};
                for (int64_t u = 0; u < units; u += step) {
                    const int64_t count = std::min(step, units - u);
                    gemv_group<Isa, Format, kRows>(units_of<Isa, Format>(weight, g, u, count, scratch), count,
                                                   x.tile<kRows, Format::kGroups>(0) + u * Format::kBlocks, sums);
                }
                for (int row = 0; row < kRows; ++row) emit(row, g, sums[row]);
            }
        });
        return;
    }
    for (int64_t first = 0; first < x.rows; first += kBatchRows) {
        const int64_t rows = std::min<int64_t>(kBatchRows, x.rows - first);
        for (int64_t g = begin; g < end; g += kPanelGroups) {
            const int used = static_cast<int>(std::min<int64_t>(kPanelGroups, end - g));
            std::fill_n(&scratch->sums[0][0][0], rows * kPanelGroups * Isa::kLanes, 0.0f);
            for (int64_t u = 0; u < units; u += kUnits) {
                const int64_t count = std::min(kUnits, units - u);
                for (int i = 0; i < used; ++i) {
                    decode_panel<Isa, Format>(units_of<Isa, Format>(weight, g + i, u, count, scratch), count, i,
                                              scratch->panel);
                }
                for (int64_t row = 0; row < rows; row += kTileRows) {
                    with_width(std::min<int64_t>(kTileRows, rows - row), [&]<int kRows>() {
                        const auto* tile = x.tile<kRows, Format::kGroups>(first + row) + u * Format::kBlocks;
                        const auto multiply = used == kPanelGroups ? multiply_panel<Isa, Format, kRows, kPanelGroups>
                                                                   : multiply_panel<Isa, Format, kRows, 1>;
                        multiply(scratch->panel, count * Format::kBlocks, tile, scratch->sums + row);
                    });
                }
            }
            for (int64_t row = 0; row < rows; ++row) {
                for (int i = 0; i < used; ++i) emit(first + row, g + i, scratch->sums[row][i]);
            }
        }
    }
}

// The part of `count` things that belongs to `worker`, the same for every run: [begin, end).
struct Share {
    int64_t begin;
    int64_t end;
};
inline Share share(int64_t count, uint32_t worker, uint32_t workers) noexcept {
    return {count * worker / workers, count * (worker + 1) / workers};
}

}  // namespace tessera::cpu
