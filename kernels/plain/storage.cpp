// convert, transpose and cache_write: ops that store rows in another type.
#include "plain.hpp"
#include "sums.hpp"

#include <tessera/cpu/page_table.hpp>

namespace tessera::plain {

using namespace cpu;

// Rows that are transposed at a time.
constexpr int64_t kTransposedRows = 32;

void run_convert(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View from = input(node, run, 0);
    const View to = output(node, run);
    const int64_t n = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const FormatSize size = format_size(to.tensor->type);
    const Share part = share(n1 * n2 * from.dim(3), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const int64_t i1 = r % n1, i2 = r / n1 % n2, i3 = r / n1 / n2;
        for (int64_t first = 0; first < n; first += kStrip) {
            float values[kStrip];
            const int64_t count = std::min(kStrip, n - first);
            decode_elements(from.tensor->type, from.row(i1, i2, i3), first, count, values);
            encode_row(to.tensor->type, values, static_cast<size_t>(count),
                       to.row(i1, i2, i3) + first / size.elements * size.bytes);
        }
    }
}

void run_transpose(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View from = input(node, run, 0);
    const View to = output(node, run);
    const int64_t n0 = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const FormatSize size = format_size(to.tensor->type);
    // An item is a strip of columns, which are whole rows of the output.
    const int64_t strips = (n0 + kStrip - 1) / kStrip;
    const Share part = share(strips * n2 * from.dim(3), run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t first = item % strips * kStrip;
        const int64_t i2 = item / strips % n2, i3 = item / strips / n2;
        const int64_t columns = std::min(kStrip, n0 - first);
        for (int64_t begin = 0; begin < n1; begin += kTransposedRows) {
            const int64_t count = std::min(kTransposedRows, n1 - begin);
            float values[kTransposedRows][kStrip];
            for (int64_t r = 0; r < count; ++r) {
                decode_elements(from.tensor->type, from.row(begin + r, i2, i3), first, columns, values[r]);
            }
            for (int64_t c = 0; c < columns; ++c) {
                float column[kTransposedRows];
                for (int64_t r = 0; r < count; ++r) column[r] = values[r][c];
                encode_row(to.tensor->type, column, static_cast<size_t>(count),
                           to.row(first + c, i2, i3) + begin / size.elements * size.bytes);
            }
        }
    }
}

void run_cache_write(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View sequences = input(node, run, 2);
    const View cache = output(node, run);
    const PageTable table(node, input(node, run, 3), cache.dim(2));
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const int64_t position = positions.integer(r);
        const int64_t page = table.page(position, sequences.integer(r));
        encode_row(cache.tensor->type, x.floats(r), static_cast<size_t>(x.dim(0)),
                   cache.row(position % TSR_PAGE_TOKENS, page));
    }
}

}  // namespace tessera::plain
