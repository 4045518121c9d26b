// Cached rows of any type as f16.
#pragma once

#include "kernels/cuda/attention/cache.hpp"
#include "kernels/cuda/formats/piece_small.hpp"

namespace tessera::cuda_kernels {

// 16 neighbouring elements of a cached row as f16, two a word. What is larger than f16 holds becomes the largest f16:
// only rows of f32 and of scales near that can be.
template <int kType>
SIMT_DEVICE void decode_to_f16(const char* row, int piece, uint32_t (&words)[8]) {
    using namespace simt;
    float values[16];
    if constexpr (kType == TSR_TYPE_F32 || kType == TSR_TYPE_F16 || kType == TSR_TYPE_BF16) {
        SIMT_UNROLL
        for (int i = 0; i < 16; ++i) values[i] = float_element<kType>(row, piece * 16 + i);
    } else {
        const Piece p = Format<kType>::load(row, piece);
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
SIMT_DEVICE void decode_cached(int type, const char* row, int piece, uint32_t (&words)[8]) {
    switch (type) {
#define TESSERA_CASE(id) \
    case TSR_TYPE_##id:  \
        return decode_to_f16<TSR_TYPE_##id>(row, piece, words);
        TESSERA_CACHED_TYPES(TESSERA_CASE)
#undef TESSERA_CASE
        default:
            return;
    }
}

}  // namespace tessera::cuda_kernels
