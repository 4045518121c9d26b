// Cached rows of any type as f16.
#pragma once

#include "kernels/cuda/attention/cache.hpp"
#include "kernels/cuda/formats/sub_block_small.hpp"

namespace tessera::cuda_kernels {

// Blocks whose elements are a scale in f16, their first two bytes, times an integer: of codes of Format the part that
// the integer is. 0: others.
template <int kType>
inline constexpr float kIntegerOfCode = 0;
template <>
inline constexpr float kIntegerOfCode<TSR_TYPE_Q8_0> = 1;
template <>
inline constexpr float kIntegerOfCode<TSR_TYPE_IQ4_NL> = 1;
template <>
inline constexpr float kIntegerOfCode<TSR_TYPE_Q6_0> = 0.25f;
template <>
inline constexpr float kIntegerOfCode<TSR_TYPE_Q5_0> = 0.125f;
template <>
inline constexpr float kIntegerOfCode<TSR_TYPE_Q4_0> = 0.0625f;

// The elements of a sub-block by products of f16, two at once: integers of 8 bits are exact, and the product with the
// scale is rounded once, as that of f32 is. For scales whose products stay within f16.
template <int kType>
SIMT_DEVICE void decode_by_halves(const SubBlock& p, uint32_t scale, uint32_t (&words)[8]) {
    using namespace simt;
    constexpr float kInteger = kIntegerOfCode<kType>;
    const uint32_t factor = pack<half_t>(kInteger, kInteger), offset = pack<half_t>(-1152 * kInteger, -1152 * kInteger);
    const uint32_t scales = scale | scale << 16;
    SIMT_UNROLL
    for (int i = 0; i < 4; ++i) {
        const uint32_t codes = p.codes[i] ^ 0x80808080u;  // 0 .. 255: the low bits of 1024 and more
        const uint32_t low = byte_permute(codes, 0x64646464u, 0x4140), high = byte_permute(codes, 0x64646464u, 0x4342);
        words[2 * i] = fma_halves(fma_halves(low, factor, offset), scales, 0x80008000u);
        words[2 * i + 1] = fma_halves(fma_halves(high, factor, offset), scales, 0x80008000u);
    }
}

// 16 neighbouring elements of a cached row as f16, two a word. What is larger than f16 holds becomes the largest f16:
// only rows of f32 and of scales near that can be.
template <int kType>
SIMT_DEVICE void decode_to_f16(const char* row, int sub_block, uint32_t (&words)[8]) {
    using namespace simt;
    float values[16];
    if constexpr (kType == TSR_TYPE_F32 || kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16) {
        SIMT_UNROLL
        for (int i = 0; i < 16; ++i) values[i] = float_element<kType>(row, sub_block * 16 + i);
    } else {
        const SubBlock p = Format<kType>::load(row, sub_block);
        if constexpr (kIntegerOfCode<kType> != 0) {
            const uint32_t scale = sub_block_bits::two_at(row + sub_block / 2 * Format<kType>::kBlockBytes);
            if ((scale & 0x7FFF) < 0x5FF0) return decode_by_halves<kType>(p, scale, words);  // 508
        }
        SIMT_UNROLL
        for (int i = 0; i < 16; ++i) values[i] = value_of(p, p.codes[i / 4], i % 4);
    }
    SIMT_UNROLL
    for (int i = 0; i < 16; ++i) {
        if constexpr (kType == TSR_TYPE_F16) break;
        values[i] = values[i] > 65504.f ? 65504.f : values[i] < -65504.f ? -65504.f : values[i];
    }
    SIMT_UNROLL
    for (int i = 0; i < 8; ++i) words[i] = pack<half_t>(values[2 * i], values[2 * i + 1]);
}

// The same of a type that is told at run time.
SIMT_DEVICE void decode_cached(int type, const char* row, int sub_block, uint32_t (&words)[8]) {
    switch (type) {
#define TESSERA_CASE(id) \
    case TSR_TYPE_##id:  \
        return decode_to_f16<TSR_TYPE_##id>(row, sub_block, words);
        TESSERA_CACHED_TYPES(TESSERA_CASE)
#undef TESSERA_CASE
        default:
            return;
    }
}

}  // namespace tessera::cuda_kernels
