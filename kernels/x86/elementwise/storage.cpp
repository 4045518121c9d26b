// convert and transpose: rows to another type, through f32.
#include "../row_conversion.hpp"
#include "rows.hpp"

#include <tessera/cpu/isa/avx2_vectors.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/ops.h>

#include <algorithm>

namespace tessera::x86 {
namespace {

using Isa = cpu::isa::Avx2Vectors;

// A tile of transpose: columns of the weight that become rows of the result, of which they are a block of every type
// that can be encoded. Rows of the weight are decoded by whole blocks.
constexpr int64_t kTileColumns = cpu::kSuperBlock;
constexpr int64_t kTileRows = cpu::kSmallBlock;

// tile[row][column] to rows of the result: `columns` of them, `count` elements each, `stride` bytes apart.
void store_columns(const float (&tile)[kTileRows][kTileColumns], int64_t columns, int64_t count, tsr_type type,
                   char* to, int64_t stride) noexcept {
    constexpr int64_t kLanes = Isa::kLanes;
    for (int64_t c = 0; c < columns; c += kLanes) {
        alignas(32) float column[kLanes][kTileRows];
        for (int64_t r = 0; r < count; r += kLanes) {
            Isa::Floats block[kLanes];
            for (int64_t i = 0; i < kLanes; ++i) block[i] = Isa::load(tile[r + i] + c);
            Isa::transpose(block);
            for (int64_t i = 0; i < kLanes; ++i) Isa::store(column[i] + r, block[i]);
        }
        for (int64_t i = 0; i < std::min(kLanes, columns - c); ++i) {
            encode_floats<Isa>(type, column[i], count, to + (c + i) * stride);
        }
    }
}

void run_convert(const tsr_node& node, const tsr_run& run) noexcept {
    const cpu::View from = cpu::input(node, run, 0);
    const cpu::View to = cpu::output(node, run);
    const int64_t n = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const cpu::FormatSize size = cpu::format_size(to.tensor->type);
    const int64_t pieces = (n + kConvertedElements - 1) / kConvertedElements;
    const cpu::Share part = cpu::share(pieces * n1 * n2 * from.dim(3), run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t first = item % pieces * kConvertedElements, r = item / pieces;
        const int64_t i1 = r % n1, i2 = r / n1 % n2, i3 = r / n1 / n2;
        const int64_t count = std::min(kConvertedElements, n - first);
        alignas(32) float values[kConvertedElements];
        decode_floats<Isa>(from.tensor->type, from.row(i1, i2, i3), first, count, values);
        encode_floats<Isa>(to.tensor->type, values, count, to.row(i1, i2, i3) + first / size.elements * size.bytes);
    }
}

void run_transpose(const tsr_node& node, const tsr_run& run) noexcept {
    const cpu::View from = cpu::input(node, run, 0);
    const cpu::View to = cpu::output(node, run);
    const int64_t n0 = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const cpu::FormatSize size = cpu::format_size(to.tensor->type);
    const int64_t across = (n0 + kTileColumns - 1) / kTileColumns, down = (n1 + kTileRows - 1) / kTileRows;
    // Tiles of neighbouring rows belong to one worker: the lines of the result that they share are not shared by two.
    const cpu::Share part = cpu::share(across * down * n2 * from.dim(3), run);
    // What tiles at the edges do not fill is transposed, too, and not stored.
    alignas(32) float tile[kTileRows][kTileColumns] = {};
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t row = item % down * kTileRows, column = item / down % across * kTileColumns;
        const int64_t matrix = item / down / across, i2 = matrix % n2, i3 = matrix / n2;
        const int64_t count = std::min(kTileRows, n1 - row), columns = std::min(kTileColumns, n0 - column);
        for (int64_t r = 0; r < count; ++r) {
            decode_floats<Isa>(from.tensor->type, from.row(row + r, i2, i3), column, columns, tile[r]);
        }
        store_columns(tile, columns, count, to.tensor->type, to.row(column, i2, i3) + row / size.elements * size.bytes,
                      to.tensor->strides[1]);
    }
}

}  // namespace

constinit const RowOp kStorage[] = {{TSR_OP_CONVERT, run_row_op<run_convert>},
                                    {TSR_OP_TRANSPOSE, run_row_op<run_transpose>, "tiles of rows and columns"},
                                    {}};

}  // namespace tessera::x86
