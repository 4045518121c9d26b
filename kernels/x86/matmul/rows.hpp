// A span of packed weight groups times the rows of a batch: chooses between the kernels by the number of rows.
#pragma once

#include "../kit.hpp"
#include "activations.hpp"
#include "fields.hpp"
#include "gemm.hpp"
#include "gemv.hpp"

#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::x86 {

// Quantised rows: whole tiles of kTileRows, then one narrower tile of what is left.
struct ActivationRows {
    unsigned char* data;  // 64-byte aligned; activation_row_bytes() for each row
    int64_t rows;
    int64_t elements;  // of a row, a multiple of 32

    template <int kRows, Division kDivision>
    ActivationBlock<kRows, kDivision>* tile(int64_t first_row) const noexcept {
        return reinterpret_cast<ActivationBlock<kRows, kDivision>*>(
            data + static_cast<size_t>(first_row * (elements / 32)) * row_block_bytes(kDivision));
    }
};

// Rows [first, first + count) of a batch from a block on, for TileUnit. Whole tiles are before them.
struct PanelRows {
    const ActivationRows& all;
    int64_t first, count;
    int64_t first_block;
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
template <class Isa, Division kDivision>
inline void quantize_into(const ActivationRows& to, int64_t row, const float* x, int centre, int64_t first_block,
                          int64_t end_block) noexcept {
    const int64_t first = row / kTileRows * kTileRows;
    with_width(std::min<int64_t>(kTileRows, to.rows - first), [&]<int kRows>() {
        quantize_row<Isa, kRows, kDivision>(x, 32 * (end_block - first_block), centre, static_cast<int>(row - first),
                                            to.tile<kRows, kDivision>(first) + first_block);
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

// Buffers of one worker.
template <class Isa, class Format>
struct alignas(64) RowsScratch {
    static constexpr int64_t kUnits = kPanelBlocks / Format::kBlocks;
    // Of a canonical weight, for few rows: packing asks for the next group's bytes, and products wait for nothing.
    // Alternating often, both overlap with the loads.
    static constexpr int64_t kFewUnits = std::max(8 / Format::kBlocks, 1);

    PanelBlock<Isa::kLanes, PanelShapeOf<Format>> panel[kPanelBlocks];
    float sums[kBatchRows * kMaxPanelGroups * Isa::kLanes];
    typename Format::Unit units[kUnits];  // of a canonical weight, packed when they are needed
};

// The scales of a group's rows, of a format whose rows have such; else unused. A packed group begins
// with them.
template <class Isa, class Format>
inline typename Isa::Floats row_scales_of(const WeightRows& weight, int64_t group) noexcept {
    constexpr size_t kPrefix = kPrefixBytes<typename Format::Block>;
    if constexpr (kPrefix == 0) {
        return Isa::zero_floats();
    } else {
        typename Format::Block::RowScale scales[Isa::kLanes];
        const int64_t first = group * Isa::kLanes;
        if (weight.packed) {
            const auto* prefixes = weight.data + first * weight.row_bytes;
            if constexpr (kPrefix == sizeof scales[0]) {
                std::memcpy(scales, prefixes, sizeof scales);
            } else {
                for (int lane = 0; lane < Isa::kLanes; ++lane)
                    std::memcpy(&scales[lane], prefixes + lane * kPrefix, sizeof scales[0]);
            }
        } else {
            for (int lane = 0; lane < Isa::kLanes; ++lane) {
                const int64_t row = std::min<int64_t>(first + lane, weight.rows - 1);
                std::memcpy(&scales[lane], weight.data + row * weight.row_bytes, sizeof scales[0]);
            }
        }
        if constexpr (sizeof scales[0] == sizeof(float))
            return Isa::load_floats(scales);
        else
            return Isa::from_f16(scales);
    }
}

// Packs units [first, first + count) of group `group` of a canonical weight. Lanes past the last row repeat it.
template <class Isa, class Format>
inline void pack_units(const WeightRows& weight, int64_t group, int64_t first, int64_t count,
                       typename Format::Unit* units) noexcept {
    using Block = typename Format::Block;
    const Block* rows[Isa::kLanes];
    for (int lane = 0; lane < Isa::kLanes; ++lane) {
        const int64_t row = std::min<int64_t>(group * Isa::kLanes + lane, weight.rows - 1);
        rows[lane] = reinterpret_cast<const Block*>(weight.data + row * weight.row_bytes + kPrefixBytes<Block>) + first;
    }
    // Eight rows are eight streams, too many and too short for the hardware prefetcher; the next group is prefetched
    // here instead, in the order of its bytes.
    const auto* next =
        weight.data + (group + 1) * Isa::kLanes * weight.row_bytes + first * static_cast<int64_t>(sizeof(*units));
    for (int64_t u = 0; u < count; ++u, next += sizeof(*units)) {
        for (size_t line = 0; line < sizeof(*units); line += 64) Isa::prefetch(next + line);
        IntoLanes<Isa, Block> blocks;
        for (int lane = 0; lane < Isa::kLanes; ++lane) blocks.rows[lane] = rows[lane] + u;
        Format::pack(units[u], blocks);
    }
}

// Units [first, first + count) of a group, in place or packed into the scratch. count <= RowsScratch::kUnits
// unless the weight is packed.
template <class Isa, class Format>
inline const typename Format::Unit* units_of(const WeightRows& weight, int64_t group, int64_t first, int64_t count,
                                             RowsScratch<Isa, Format>* scratch) noexcept {
    if (weight.packed) {
        constexpr int64_t kPrefixes = Isa::kLanes * kPrefixBytes<typename Format::Block>;
        const auto* at = weight.data + group * Isa::kLanes * weight.row_bytes + kPrefixes;
        return reinterpret_cast<const typename Format::Unit*>(at) + first;
    }
    pack_units<Isa, Format>(weight, group, first, count, scratch->units);
    return scratch->units;
}

// The bytes of the panel after the one that is multiplied, asked for between its products: while panels are decoded
// memory would wait, and requests at once for all of a panel would stop the core.
template <class Isa>
class NextPanel {
  public:
    // `bytes` of each of `groups` groups, which lie `group_bytes` apart.
    NextPanel(const void* first, int64_t groups, int64_t group_bytes, int64_t bytes) noexcept
        : at_(static_cast<const unsigned char*>(first)), groups_(groups), group_bytes_(group_bytes), bytes_(bytes) {}
    int64_t lines() const noexcept { return groups_ * ((bytes_ + kLine - 1) / kLine); }
    void ask(int64_t lines) noexcept {
        for (; lines > 0 && groups_ > 0; --lines) {
            Isa::prefetch(at_ + asked_);
            asked_ += kLine;
            if (asked_ < bytes_) continue;
            asked_ = 0;
            at_ += group_bytes_;
            --groups_;
        }
    }

  private:
    static constexpr int64_t kLine = 64;
    const unsigned char* at_;
    int64_t groups_, group_bytes_, bytes_, asked_ = 0;
};

// The rows of a batch, from `first` on, times a decoded panel, by vectors.
template <class Isa, class Format>
inline void multiply_panel(const PanelTable& panels, int used, int64_t blocks, const ActivationRows& x, int64_t first,
                           int64_t rows, int64_t first_block, NextPanel<Isa> next,
                           RowsScratch<Isa, Format>* scratch) noexcept {
    // Few rows take so little time that products of a whole panel would wait for its requests.
    constexpr int64_t kFewBlocks = 4;
    const int64_t part = rows > kVectorRows ? blocks : std::min(kFewBlocks, blocks);
    const int64_t calls = (rows + kTileRows - 1) / kTileRows * ((blocks + part - 1) / part);
    const int64_t lines = (next.lines() + calls - 1) / calls;
    for (int64_t row = 0; row < rows; row += kTileRows) {
        with_width(std::min<int64_t>(kTileRows, rows - row), [&]<int kRows>() {
            const auto multiply = panels.find(PanelShapeOf<Format>::kIndex, kRows, used);
            const auto* tile = x.tile<kRows, Format::kDivision>(first + row) + first_block;
            for (int64_t b = 0; b < blocks; b += part) {
                next.ask(lines);
                multiply(scratch->panel + b * panels.pairs(), std::min(part, blocks - b), tile + b,
                         scratch->sums + row * panels.groups * Isa::kLanes);
            }
        });
    }
}

// Groups [begin, end) of a weight times all rows of `x`. Hands out kLanes neighbouring results at a time:
// emit(row, group, const float* lanes). `scratch` is the worker's own.
template <class Isa, class Format, class Emit>
inline void multiply_rows(const PanelTable& panels, const WeightRows& weight, int64_t begin, int64_t end,
                          const ActivationRows& x, RowsScratch<Isa, Format>* scratch, Emit&& emit) noexcept {
    const int64_t units = x.elements / (32 * Format::kBlocks);
    constexpr int kFewOfSigned = 2;
    if (x.rows <= (Format::kSigned && panels.signed_alike ? kFewOfSigned : kTileRows)) {
        const int64_t step = weight.packed ? units : RowsScratch<Isa, Format>::kFewUnits;
        with_width(x.rows, [&]<int kRows>() {
            for (int64_t g = begin; g < end; ++g) {
                alignas(64) float sums[kRows][Isa::kLanes] = {};
                const auto row_scale = row_scales_of<Isa, Format>(weight, g);
                for (int64_t u = 0; u < units; u += step) {
                    const int64_t count = std::min(step, units - u);
                    gemv_group<Isa, Format, kRows>(units_of<Isa, Format>(weight, g, u, count, scratch), count,
                                                   row_scale, x.tile<kRows, Format::kDivision>(0) + u * Format::kBlocks,
                                                   sums);
                }
                for (int row = 0; row < kRows; ++row) emit(row, g, sums[row]);
            }
        });
        return;
    }
    const TilesInUse tiles(panels, kTakesTiles<PanelShapeOf<Format>> ? x.rows : 0);
    const int64_t step = panels.elements() / (32 * Format::kBlocks);
    const int64_t lanes = panels.groups * Isa::kLanes;
    for (int64_t first = 0; first < x.rows; first += kBatchRows) {
        const int64_t rows = std::min<int64_t>(kBatchRows, x.rows - first);
        for (int64_t g = begin; g < end; g += panels.groups) {
            const int used = static_cast<int>(std::min<int64_t>(panels.groups, end - g));
            std::fill_n(scratch->sums, rows * lanes, 0.0f);
            for (int64_t u = 0; u < units; u += step) {
                const int64_t count = std::min(step, units - u);
                for (int i = 0; i < used; ++i) {
                    decode_panel<Isa, Format>(units_of<Isa, Format>(weight, g + i, u, count, scratch), count,
                                              row_scales_of<Isa, Format>(weight, g + i), i, panels.pairs(),
                                              scratch->panel);
                }
                if (tiles.unit() && rows > kVectorRows) {
                    const PanelRows these{x, first, rows, u * Format::kBlocks};
                    tiles.unit()->multiply[PanelShapeOf<Format>::kIndex](scratch->panel, count * Format::kBlocks, used,
                                                                         Format::kCentre, these, scratch->sums);
                    continue;
                }
                const bool is_last = u + step >= units;
                const int64_t next = is_last ? g + panels.groups : g;
                const int64_t asked = weight.packed ? std::min<int64_t>(used, weight.rows / Isa::kLanes - next) : 0;
                const auto* at =
                    asked > 0 ? units_of<Isa, Format>(weight, next, is_last ? 0 : u + step, count, scratch) : nullptr;
                multiply_panel<Isa, Format>(panels, used, count * Format::kBlocks, x, first, rows, u * Format::kBlocks,
                                            {at, std::max<int64_t>(asked, 0), Isa::kLanes * weight.row_bytes,
                                             count * static_cast<int64_t>(sizeof(*at))},
                                            scratch);
            }
            for (int64_t row = 0; row < rows; ++row) {
                for (int i = 0; i < used; ++i) {
                    emit(first + row, g + i, scratch->sums + row * lanes + i * Isa::kLanes);
                }
            }
        }
    }
}
}  // namespace tessera::x86
