// The element types that can be decoded, by id: sizes, rows to f32, and f32 to rows where there is an encoder.
#pragma once

#include <tessera/formats/block_codes.hpp>
#include <tessera/formats/block_list.hpp>
#include <tessera/formats/encode.hpp>
#include <tessera/formats/freestanding.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/types.h>

namespace tessera::formats {

struct FormatSize {
    uint32_t elements;  // a block; 0 if the type is not known here
    uint32_t bytes;
    uint32_t prefix;  // bytes of a row before its first block
};

// Of any type of TSR_TYPES; 0 elements for any other.
constexpr FormatSize listed_size(tsr_type type) noexcept {
    switch (type) {
#define TSR_CASE(id, number, name, elements, bytes, prefix) \
    case TSR_TYPE_##id:                                     \
        return {elements, bytes, prefix};
        TSR_TYPES(TSR_CASE)
#undef TSR_CASE
        default:
            return {0, 0, 0};
    }
}

// Of a type that can be decoded; 0 elements for any other: integers, f64, interleaved and packed rows.
constexpr FormatSize format_size(tsr_type type) noexcept {
    switch (type) {
#define TSR_CASE(id, Name) case TSR_TYPE_##id:
        TSR_FLOAT_TYPES(TSR_CASE)
        TSR_BLOCK_TYPES(TSR_CASE)
#undef TSR_CASE
        return listed_size(type);
        default:
            return {0, 0, 0};
    }
}

#define TSR_SAME(id, Name)                                                            \
    static_assert(format_size(TSR_TYPE_##id).elements == Block##Name::kElements &&    \
                      format_size(TSR_TYPE_##id).bytes == sizeof(Block##Name) &&      \
                      format_size(TSR_TYPE_##id).prefix == kPrefixBytes<Block##Name>, \
                  "the row of " #id " in types.h and its block differ");
TSR_BLOCK_TYPES(TSR_SAME)
#undef TSR_SAME

// As people write it; "another type" for one that is not listed.
constexpr const char* format_name(tsr_type type) noexcept {
    switch (type) {
#define TSR_CASE(id, number, name, ...) \
    case TSR_TYPE_##id:                 \
        return name;
        TSR_TYPES(TSR_CASE)
        TSR_INTERLEAVED_TYPES(TSR_CASE)
        TSR_PACKED_TYPES(TSR_CASE)
#undef TSR_CASE
        case TSR_TYPE_NONE:
            return "nothing";
        default:
            return "another type";
    }
}

// Of the layout of the x86 plugins that holds rows of the type packed; nullptr for a type that they do not pack.
constexpr const char* packed_layout_name(tsr_type type) noexcept {
    switch (type) {
#define TSR_CASE(id, number, name, rows_type, rows) \
    case TSR_TYPE_##rows_type:                      \
        return name;
        TSR_PACKED_TYPES(TSR_CASE)
#undef TSR_CASE
        default:
            return nullptr;
    }
}

inline bool can_decode(tsr_type type) noexcept {
    return format_size(type).elements != 0;
}

// Whether encode_row knows the type, and any whole blocks of a row can be encoded alone.
constexpr bool can_encode(tsr_type type) noexcept {
    bool can = type == TSR_TYPE_F32 || type == TSR_TYPE_F16 || type == TSR_TYPE_BF16;
    visit_block_format(type, [&]<class Block>() { can = kCanEncode<Block>; });
    return can;
}

// Whether encode_row knows the type: what rows of a cache can be.
constexpr bool can_encode_rows(tsr_type type) noexcept {
    bool can = can_encode(type);
    visit_block_format(type, [&]<class Block>() { can = can || kEncodesRows<Block>; });
    return can;
}

// Bytes of `rows` rows of `elements`, which are whole blocks. 0 if not, or if the type is not known here.
inline size_t format_bytes(tsr_type type, size_t elements, size_t rows = 1) noexcept {
    const FormatSize size = format_size(type);
    if (size.elements == 0 || elements % size.elements != 0) return 0;
    return (elements / size.elements * size.bytes + size.prefix) * rows;
}

// Elements first .. first + count of the row at `row` (any alignment) to f32. False, and nothing written, if the type
// is not known here or the elements are not whole blocks. Any thread.
[[gnu::noinline]] inline bool decode_part(tsr_type type, const void* row, size_t first, size_t count,
                                          float* out) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(row);
    if (type == TSR_TYPE_F32) {
        memcpy(out, bytes + first * sizeof(float), count * sizeof(float));
        return true;
    }
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
        for (size_t i = 0; i < count; ++i) {
            uint16_t value;
            memcpy(&value, bytes + 2 * (first + i), 2);
            out[i] = type == TSR_TYPE_F16 ? f16_to_f32(value) : bf16_to_f32(value);
        }
        return true;
    }
    bool whole = false;
    visit_block_format(type, [&]<class Block>() {
        constexpr size_t kElements = Block::kElements;
        whole = first % kElements == 0 && count % kElements == 0;
        if (!whole) return;
        const unsigned char* at = bytes + kPrefixBytes<Block> + first / kElements * sizeof(Block);
        for (size_t b = 0; b < count / kElements; ++b, at += sizeof(Block), out += kElements) {
            Block block;
            memcpy(&block, at, sizeof(Block));
            if constexpr (kPrefixBytes<Block> != 0) {
                typename Block::RowScale scale;
                memcpy(&scale, bytes, sizeof scale);
                decode(block, scale, out);
            } else {
                decode(block, out);
            }
        }
    });
    return whole;
}

// A whole row of `elements`. As decode_part otherwise.
inline bool decode_row(tsr_type type, const void* row, size_t elements, float* out) noexcept {
    return decode_part(type, row, 0, elements, out);
}

// `elements` f32 values, a row, to `type` at `out` (any alignment). False, and nothing written, if
// can_encode_rows(type) is false or the elements are not whole blocks. Any thread.
inline bool encode_row(tsr_type type, const float* in, size_t elements, void* out) noexcept {
    auto* bytes = static_cast<unsigned char*>(out);
    if (type == TSR_TYPE_F32) {
        memcpy(out, in, elements * sizeof(float));
        return true;
    }
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
        for (size_t i = 0; i < elements; ++i) {
            const uint16_t value = type == TSR_TYPE_F16 ? f32_to_f16(in[i]) : f32_to_bf16(in[i]);
            memcpy(bytes + 2 * i, &value, 2);
        }
        return true;
    }
    bool whole = false;
    visit_block_format(type, [&]<class Block>() {
        if constexpr (kCanEncode<Block>) {
            whole = elements % kSmallBlock == 0;
            if (!whole) return;
            for (size_t b = 0; b < elements / kSmallBlock; ++b) {
                Block block;
                encode(in + b * kSmallBlock, block);
                memcpy(bytes + b * sizeof(Block), &block, sizeof(Block));
            }
        } else if constexpr (kEncodesRows<Block>) {
            whole = elements % kSmallBlock == 0;
            if (!whole) return;
            uint32_t largest = 0;  // in the order of magnitudes, NaNs behind all others
            for (size_t first = 0; first < elements; first += kSmallBlock) {
                const auto bits = bit_cast<uint32_t>(encode_detail::largest_magnitude(in + first));
                largest = bits > largest ? bits : largest;
            }
            auto head = Block::RowHead::of(bit_cast<float>(largest));
            for (size_t b = 0; b < elements / kSmallBlock; ++b) {
                Block block;
                encode(in + b * kSmallBlock, head, block);
                memcpy(bytes + kPrefixBytes<Block> + b * sizeof(Block), &block, sizeof(Block));
            }
            memcpy(bytes, &head, sizeof head);
        }
    });
    return whole;
}

}  // namespace tessera::formats
