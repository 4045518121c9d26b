// Rows that files hold interleaved, four, eight or sixteen neighbours at a time (TSR_INTERLEAVED_TYPES), back to rows
// of their own. Exact: the bytes that the same rows have in a file of the plain type.
#pragma once

#include <tessera/formats/formats.hpp>
#include <tessera/formats/interleaving.hpp>

namespace tessera::formats {

// Two elements a time.
struct Bf16Pair {
    static constexpr int kElements = 2;
    uint16_t pair[2];
};
TSR_INTERLEAVED(TSR_TYPE_BF16_R16, Bf16Pair, 16) {
    memcpy(block.pair, group + 4 * row, 4);
}

// Calls visit.template operator()<Interleaved<type>>(rows_type) and returns true; false for a type that is not
// interleaved.
template <class Visitor>
inline bool visit_interleaved(tsr_type type, Visitor&& visit) {
    switch (type) {
#define TSR_CASE(id, number, name, rows_type, rows)                                  \
    case TSR_TYPE_##id:                                                              \
        static_assert(Interleaved<TSR_TYPE_##id>::kRows == rows);                    \
        visit.template operator()<Interleaved<TSR_TYPE_##id>>(TSR_TYPE_##rows_type); \
        return true;
        TSR_INTERLEAVED_TYPES(TSR_CASE)
#undef TSR_CASE
        default:
            return false;
    }
}

// `groups` groups of interleaved rows of `elements` (whole blocks) to plain rows one after another. False for a type
// that is not interleaved. Buffers do not overlap; any alignment; any thread.
inline bool separate_rows(tsr_type type, size_t elements, size_t groups, const void* interleaved, void* rows) noexcept {
    return visit_interleaved(type, [&]<class Kind>(tsr_type rows_type) {
        using Block = typename Kind::Block;
        const size_t prefix = format_size(rows_type).prefix, row_bytes = format_bytes(rows_type, elements);
        const auto* from = static_cast<const uint8_t*>(interleaved);
        auto* to = static_cast<uint8_t*>(rows);
        for (size_t g = 0; g < groups; ++g, from += Kind::kRows * row_bytes, to += Kind::kRows * row_bytes) {
            for (int row = 0; row < Kind::kRows; ++row) {
                const auto at = static_cast<size_t>(row);
                uint8_t* out = to + at * row_bytes;
                memcpy(out, from + at * prefix, prefix);
                out += prefix;
                const uint8_t* in = from + Kind::kRows * prefix;
                for (size_t e = 0; e < elements; e += Block::kElements) {
                    Block block{};
                    Kind::take(in, row, block);
                    memcpy(out, &block, sizeof block);
                    in += Kind::kRows * sizeof block, out += sizeof block;
                }
            }
        }
    });
}

}  // namespace tessera::formats
