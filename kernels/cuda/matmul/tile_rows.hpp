// Which rows and which matrix a tile of a product has.
#pragma once

#include "../rows.hpp"
#include "tiles.hpp"

namespace tessera::cuda_kernels {

struct Tile {
    int matrix;  // expert, or index of the batch
    int first;   // row from the first of the actual ones on, or position
    int count;   // of rows; at most those of a tile
    int begin;   // the first of the actual rows
};

// The tile of this block; count 0: there is none.
template <int kRows>
SIMT_DEVICE Tile tile_of_block(const Tiles& a) {
    using namespace simt;
    const RowRange range = actual_rows(a.rows);
    const auto x = static_cast<int>(block_index().x);
    if (!a.tiles) {
        const int first = x * kRows;
        return {static_cast<int>(block_index().z), first, maximum(0, minimum(kRows, range.end - range.begin - first)),
                range.begin};
    }
    if (x >= a.tiles[0]) return {0, 0, 0, 0};
    const int32_t* tile = a.tiles + kMapHead + kMapTile * x;
    return {tile[0], tile[1], tile[2], range.begin};
}

// Where row `row` of the tile lies from the beginning of a tensor on, in bytes.
SIMT_DEVICE int64_t row_offset(const Tiles& a, const Tile& tile, int row, Numbering numbering, int64_t row_bytes,
                               int64_t slot_bytes) {
    int at = tile.first + row, slot = tile.matrix;
    if (numbering == kByPosition) return at * row_bytes;
    if (a.tiles) {
        const int place = a.places[at];
        at = place / a.slots;
        slot = place - at * a.slots;
    }
    return (at + (numbering == kAbsolute ? tile.begin : 0)) * row_bytes + slot * slot_bytes;
}

// The output that a column of the tile stands for; of pairs eight columns of the first matrix are followed by eight of
// the second.
SIMT_DEVICE int output_of_column(const Tiles& a, int first_column, int column) {
    return a.paired ? first_column / 2 + column / 16 * 8 + column % 8 : first_column + column;
}
// The row of a matrix, nullptr past the last one.
SIMT_DEVICE const char* weight_of_column(const Tiles& a, int matrix, int first_column, int column) {
    const int output = output_of_column(a, first_column, column);
    if (output >= a.n) return nullptr;
    const void* weight = a.weights[a.paired ? column / 8 % 2 : 0];
    return at<char>(weight, matrix * a.weight_matrix + output * a.weight_row);
}

// The same, of the last one for columns past it.
SIMT_DEVICE const char* nearest_weight_of_column(const Tiles& a, int matrix, int first_column, int column) {
    const int output = simt::minimum(output_of_column(a, first_column, column), a.n - 1);
    const void* weight = a.weights[a.paired ? column / 8 % 2 : 0];
    return at<char>(weight, matrix * a.weight_matrix + output * a.weight_row);
}

// A float as the sum of two bf16, the larger one in the low half.
SIMT_DEVICE uint32_t two_bfloats(float value) {
    using namespace simt;
    const auto first = from_float<bfloat16_t>(value);
    const float rest = value - to_float(first);
    return first.bits | static_cast<uint32_t>(from_float<bfloat16_t>(rest == rest ? rest : 0.f).bits) << 16;
}

SIMT_DEVICE float silu_times(float gate, float up) {
    return gate / (1.f + simt::expf(-gate)) * up;
}

// Rows without a valid expert.
template <int kColumns>
SIMT_DEVICE void write_constants(const Tiles& a, const Tile& tile) {
    using namespace simt;
    if (!a.constants) return;
    const float value = tile.matrix == a.experts ? 0.f : bits_as<float>(0x7FC00000u);
    const int first = static_cast<int>(block_index().y) * kColumns, end = minimum(first + kColumns, a.n);
    for (int row = static_cast<int>(warp()); row < tile.count; row += static_cast<int>(block_size().x) / 32) {
        auto* y = at<float>(a.y, row_offset(a, tile, row, a.y_numbering, a.y_row, a.y_slot));
        for (int i = first + static_cast<int>(lane()); i < end; i += 32) y[i] = value;
    }
}

}  // namespace tessera::cuda_kernels
