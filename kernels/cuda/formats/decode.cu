// get_rows, convert and transpose: weights of any type, element by element. The type is told at run time, so that the decoding
// of all types is compiled once for each kernel; neither is where time is spent.
#include "decode.hpp"
#include "sub_block.hpp"
#include "../overlap.hpp"

#include <tessera/formats/encode.hpp>

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

// Sub-block `sub_block` of a row of any block format.
SIMT_DEVICE SubBlock load_sub_block(int type, const char* row, int sub_block) {
    switch (type) {
#define TESSERA_LOAD(id, Name) \
    case TSR_TYPE_##id:        \
        return Format<TSR_TYPE_##id>::load(row, sub_block);
        TSR_BLOCK_TYPES(TESSERA_LOAD)
#undef TESSERA_LOAD
        default:
            return {{0, 0, 0, 0}, bits_as<float>(0x7FFFFFFFu), 0};
    }
}

SIMT_DEVICE float element_of(const SubBlock& p, int i) {
    const uint32_t low = i & 4 ? p.codes[1] : p.codes[0], high = i & 4 ? p.codes[3] : p.codes[2];
    return value_of(p, i & 8 ? high : low, i % 4);
}

SIMT_DEVICE bool is_float(int type) {
    return type == TSR_TYPE_F32 || type == TSR_TYPE_F16 || type == TSR_TYPE_BF16;
}
SIMT_DEVICE float load_float(int type, const char* row, int i) {
    if (type == TSR_TYPE_F32) return float_element<TSR_TYPE_F32>(row, i);
    return type == TSR_TYPE_F16 ? float_element<TSR_TYPE_F16>(row, i) : float_element<TSR_TYPE_BF16>(row, i);
}

// Block `at` of a row, of a format that can be encoded.
template <class Block>
SIMT_DEVICE void encode_block(const float* values, char* row, int at) {
    if constexpr (formats::kCanEncode<Block>) formats::encode(values, reinterpret_cast<Block*>(row)[at]);
}

// `count` elements from element `first` of a row, a multiple of 32.
SIMT_DEVICE void encode_elements(int type, const float (&values)[kConvertElements], int count, char* row, int first) {
    switch (type) {
        case TSR_TYPE_F32:
            for (int i = 0; i < count; ++i) reinterpret_cast<float*>(row)[first + i] = values[i];
            return;
        case TSR_TYPE_F16:
            for (int i = 0; i < count; ++i)
                reinterpret_cast<uint16_t*>(row)[first + i] = formats::f32_to_f16(values[i]);
            return;
        case TSR_TYPE_BF16:
            for (int i = 0; i < count; ++i)
                reinterpret_cast<uint16_t*>(row)[first + i] = formats::f32_to_bf16(values[i]);
            return;
#define TESSERA_ENCODE(id, Name)                                                   \
    case TSR_TYPE_##id:                                                            \
        encode_block<formats::Block##Name>(values, row, first / kConvertElements); \
        return;
            TSR_BLOCK_TYPES(TESSERA_ENCODE)
#undef TESSERA_ENCODE
        default:
            return;
    }
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the elements of a row by kGetRowsThreads * kGetRowsElements, y the maximum of rows or fewer. An id that is not of
// the table gives not-a-number.
SIMT_KERNEL(kGetRowsThreads, 2) get_rows(GetRows g) {
    const RowRange range = awaited_rows(g.rows);
    const int first = static_cast<int>(block_index().x * kGetRowsThreads + thread_index().x) * kGetRowsElements;
    if (first >= g.n) return;
    for (int row = range.begin + static_cast<int>(block_index().y); row < range.end;
         row += static_cast<int>(grid_size().y)) {
        const int id = *at<int32_t>(g.ids, row * g.id);
        float values[kGetRowsElements];
        if (id < 0 || id >= g.count) {
            SIMT_UNROLL
            for (int i = 0; i < kGetRowsElements; ++i) values[i] = bits_as<float>(0x7FFFFFFFu);
        } else if (is_float(g.type)) {
            SIMT_UNROLL
            for (int i = 0; i < kGetRowsElements; ++i)
                values[i] = first + i < g.n ? load_float(g.type, at<char>(g.table, id * g.table_row), first + i) : 0;
        } else {
            const SubBlock p = load_sub_block(g.type, at<char>(g.table, id * g.table_row), first / kSubBlockElements);
            SIMT_UNROLL
            for (int i = 0; i < kGetRowsElements; ++i) values[i] = element_of(p, first % kSubBlockElements + i);
        }
        float* y = at<float>(g.y, row * g.y_row) + first;
        if (first + kGetRowsElements <= g.n && reinterpret_cast<uintptr_t>(y) % 16 == 0) {
            store_global(y, Float4{values[0], values[1], values[2], values[3]});
        } else {
            SIMT_UNROLL
            for (int i = 0; i < kGetRowsElements; ++i)
                if (first + i < g.n) y[i] = values[i];
        }
    }
}

// Grid: x the elements of a row of the result by kConvertThreads * kConvertElements, y its rows or fewer, z the batch times
// the outer dimension or fewer.
SIMT_KERNEL(kConvertThreads, 2) convert(Convert c) {
    const int elements = c.transposed ? c.n : c.k, rows = c.transposed ? c.k : c.n;
    const int first = static_cast<int>(block_index().x * kConvertThreads + thread_index().x) * kConvertElements;
    if (first >= elements) return;
    const int count = minimum(kConvertElements, elements - first);
    const bool floats = is_float(c.from_type);
    for (int z = static_cast<int>(block_index().z); z < c.batch * c.outer; z += static_cast<int>(grid_size().z)) {
        const char* from = at<char>(c.from, z % c.batch * c.from_batch + z / c.batch * c.from_outer);
        char* to = at<char>(c.to, z % c.batch * c.to_batch + z / c.batch * c.to_outer);
        for (int row = static_cast<int>(block_index().y); row < rows; row += static_cast<int>(grid_size().y)) {
            float values[kConvertElements];
            SubBlock p{};
            for (int i = 0; i < kConvertElements; ++i) {
                values[i] = 0;
                if (i >= count) continue;
                const int source_row = c.transposed ? first + i : row, source = c.transposed ? row : first + i;
                const char* of_row = from + source_row * c.from_row;
                if (floats) {
                    values[i] = load_float(c.from_type, of_row, source);
                    continue;
                }
                if (c.transposed || i % kSubBlockElements == 0)
                    p = load_sub_block(c.from_type, of_row, source / kSubBlockElements);
                values[i] = element_of(p, source % kSubBlockElements);
            }
            encode_elements(c.type, values, count, to + row * c.to_row, first);
        }
    }
}
