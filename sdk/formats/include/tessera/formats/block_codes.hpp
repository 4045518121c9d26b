// Blocks as codes: what a format gives once, so that everything runs with it. Decoding to f32, the packed layout and
// the products of CPUs (kernels/x86/matmul/packed_any.hpp) and the sub-blocks of CUDA kernels
// (kernels/cuda/formats/sub_block_any.hpp) are made of it, where a format has none of its own by hand.
#pragma once

#include <tessera/formats/block.hpp>
#include <tessera/formats/freestanding.hpp>
#include <tessera/formats/half.hpp>

namespace tessera::formats {

// 16 neighbouring elements of a block: element i is scale * codes[i] + offset. Where there are offsets the product is
// exact in f32. Codes are -127 .. 127; of formats with offsets or a scale for 16 elements at most Block::kLargestCode
// in magnitude, which is at most 16 where a scale serves 32 elements, else 32.
struct Codes16 {
    int8_t codes[16];
    float scale;
    float offset = 0;
};

// A format defines, for elements 16 half .. 16 half + 15 of a block,
//     void codes_of(const Block& block, int half, Codes16& to)
// or, if its rows have a scale, void codes_of(const Block& block, float row_scale, int half, Codes16& to).
// Freestanding.
template <class Block>
inline Codes16 codes_at(const Block& block, [[maybe_unused]] float row_scale, int half) noexcept {
    Codes16 codes;
    if constexpr (kPrefixBytes<Block> != 0)
        codes_of(block, row_scale, half, codes);
    else
        codes_of(block, half, codes);
    return codes;
}

template <class Block>
inline constexpr bool kHasCodes = requires(const Block& block, Codes16& to) {
    codes_of(block, 0, to);
}
|| requires(const Block& block, Codes16& to) {
    codes_of(block, 0.0f, 0, to);
};

namespace block_codes_detail {
template <class Block>
inline void decode(const Block& block, float row_scale, float* out) noexcept {
    for (int half = 0; half < Block::kElements / 16; ++half) {
        const Codes16 c = codes_at(block, row_scale, half);
        for (const int8_t code : c.codes) {
            const float product = c.scale * static_cast<float>(code);
            *out++ = Block::kOffsets ? product + c.offset : product;  // + 0 would change the sign of -0
        }
    }
}
}  // namespace block_codes_detail

// As decode of a format that has one of its own (block.hpp).
template <class Block>
requires kHasCodes<Block>
inline void decode(const Block& block, float* out) noexcept {
    block_codes_detail::decode(block, 1.0f, out);
}
template <class Block>
requires kHasCodes<Block>
inline void decode(const Block& block, typename Block::RowScale row_scale, float* out) noexcept {
    if constexpr (sizeof row_scale == 2)
        block_codes_detail::decode(block, f16_to_f32(row_scale), out);
    else
        block_codes_detail::decode(block, row_scale, out);
}

}  // namespace tessera::formats
