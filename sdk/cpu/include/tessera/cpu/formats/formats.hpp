// Every element type that the CPU kernels know, by id: sizes, rows to f32, and f32 to rows where encoding is offered.
#pragma once

#include <tessera/cpu/formats/blocks.hpp>
#include <tessera/cpu/formats/decode.hpp>
#include <tessera/cpu/formats/encode.hpp>
#include <tessera/cpu/formats/half.hpp>
#include <tessera/types.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tessera::cpu {

// Calls `visit.template operator()<Block>()` for a block format and returns true; false for any other type.
template <class Visitor>
inline bool visit_block_format(tsr_type type, Visitor&& visit) {
    switch (type) {
        case TSR_TYPE_Q4_0:
            visit.template operator()<BlockQ4_0>();
            return true;
        case TSR_TYPE_Q4_1:
            visit.template operator()<BlockQ4_1>();
            return true;
        case TSR_TYPE_Q5_0:
            visit.template operator()<BlockQ5_0>();
            return true;
        case TSR_TYPE_Q5_1:
            visit.template operator()<BlockQ5_1>();
            return true;
        case TSR_TYPE_Q8_0:
            visit.template operator()<BlockQ8_0>();
            return true;
        case TSR_TYPE_Q2_K:
            visit.template operator()<BlockQ2K>();
            return true;
        case TSR_TYPE_Q3_K:
            visit.template operator()<BlockQ3K>();
            return true;
        case TSR_TYPE_Q4_K:
            visit.template operator()<BlockQ4K>();
            return true;
        case TSR_TYPE_Q5_K:
            visit.template operator()<BlockQ5K>();
            return true;
        case TSR_TYPE_Q6_K:
            visit.template operator()<BlockQ6K>();
            return true;
        case TSR_TYPE_IQ4_NL:
            visit.template operator()<BlockIq4Nl>();
            return true;
        case TSR_TYPE_IQ4_XS:
            visit.template operator()<BlockIq4Xs>();
            return true;
        default:
            return false;
    }
}

// Elements of a block. Formats of 256 are those whose struct names them; plain types have 1.
template <class Block>
inline constexpr int kBlockElements = kSmallBlock;
template <>
inline constexpr int kBlockElements<BlockQ2K> = kSuperBlock;
template <>
inline constexpr int kBlockElements<BlockQ3K> = kSuperBlock;
template <>
inline constexpr int kBlockElements<BlockQ4K> = kSuperBlock;
template <>
inline constexpr int kBlockElements<BlockQ5K> = kSuperBlock;
template <>
inline constexpr int kBlockElements<BlockQ6K> = kSuperBlock;
template <>
inline constexpr int kBlockElements<BlockIq4Xs> = kSuperBlock;

struct FormatSize {
    uint32_t elements;  // a block; 0 if the type is not known here
    uint32_t bytes;
};

inline FormatSize format_size(tsr_type type) noexcept {
    if (type == TSR_TYPE_F32) return {1, 4};
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) return {1, 2};
    FormatSize size{0, 0};
    visit_block_format(type, [&]<class Block>() { size = {kBlockElements<Block>, sizeof(Block)}; });
    return size;
}

inline bool can_decode(tsr_type type) noexcept {
    return format_size(type).elements != 0;
}

inline bool can_encode(tsr_type type) noexcept {
    return type == TSR_TYPE_F32 || type == TSR_TYPE_F16 || type == TSR_TYPE_BF16 || type == TSR_TYPE_Q8_0 ||
           type == TSR_TYPE_Q4_0 || type == TSR_TYPE_Q4_1 || type == TSR_TYPE_Q5_0 || type == TSR_TYPE_Q5_1;
}

// Bytes of `elements` consecutive elements; they are whole blocks. 0 if not, or if the type is not known here.
inline size_t format_bytes(tsr_type type, size_t elements) noexcept {
    const FormatSize size = format_size(type);
    return size.elements == 0 || elements % size.elements != 0 ? 0 : elements / size.elements * size.bytes;
}

// `elements` values of `type` at `in` (any alignment) to f32. False, and nothing written, if the type is not known here
// or the elements are not whole blocks. Any thread.
inline bool decode_row(tsr_type type, const void* in, size_t elements, float* out) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(in);
    if (type == TSR_TYPE_F32) {
        std::memcpy(out, in, elements * sizeof(float));
        return true;
    }
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
        for (size_t i = 0; i < elements; ++i) {
            uint16_t value;
            std::memcpy(&value, bytes + 2 * i, 2);
            out[i] = type == TSR_TYPE_F16 ? f16_to_f32(value) : bf16_to_f32(value);
        }
        return true;
    }
    bool whole = false;
    visit_block_format(type, [&]<class Block>() {
        constexpr size_t kElements = kBlockElements<Block>;
        whole = elements % kElements == 0;
        if (!whole) return;
        for (size_t b = 0; b < elements / kElements; ++b) {
            Block block;
            std::memcpy(&block, bytes + b * sizeof(Block), sizeof(Block));
            decode(block, out + b * kElements);
        }
    });
    return whole;
}

// `elements` f32 values to `type` at `out` (any alignment). False, and nothing written, if can_encode(type) is false or
// the elements are not whole blocks. Any thread.
inline bool encode_row(tsr_type type, const float* in, size_t elements, void* out) noexcept {
    auto* bytes = static_cast<unsigned char*>(out);
    if (type == TSR_TYPE_F32) {
        std::memcpy(out, in, elements * sizeof(float));
        return true;
    }
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) {
        for (size_t i = 0; i < elements; ++i) {
            const uint16_t value = type == TSR_TYPE_F16 ? f32_to_f16(in[i]) : f32_to_bf16(in[i]);
            std::memcpy(bytes + 2 * i, &value, 2);
        }
        return true;
    }
    bool whole = false;
    visit_block_format(type, [&]<class Block>() {
        if constexpr (requires(Block block) { encode(in, block); }) {
            whole = elements % kSmallBlock == 0;
            if (!whole) return;
            for (size_t b = 0; b < elements / kSmallBlock; ++b) {
                Block block;
                encode(in + b * kSmallBlock, block);
                std::memcpy(bytes + b * sizeof(Block), &block, sizeof(Block));
            }
        }
    });
    return whole;
}

}  // namespace tessera::cpu
