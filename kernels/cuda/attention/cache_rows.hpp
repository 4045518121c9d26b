// Rows of the cache, in blocks of 32 elements (of plain types, too), of any type that can be cached.
#pragma once

#include "cache.hpp"

#include <tessera/cuda/simt.hpp>
#include <tessera/formats/block_list.hpp>
#include <tessera/formats/encode.hpp>

namespace tessera::cuda_kernels {

inline constexpr int kCacheBlock = 32;

// X(id, Name): types whose blocks are these.
#define TESSERA_CACHED_BLOCKS(X) \
    X(Q8_0, Q8_0) X(Q6_0, Q6_0) X(Q5_0, Q5_0) X(Q5_1, Q5_1) X(Q4_0, Q4_0) X(Q4_1, Q4_1) X(IQ4_NL, Iq4Nl)

// Calls store(i, value) for `count` elements of a row, kCacheBlock at most, from element `first` on: a multiple of
// kCacheBlock in a type with blocks.
template <class Store>
SIMT_DEVICE void decode_cached_block(int type, const char* row, int first, int count, Store&& store) {
    switch (type) {
        case TSR_TYPE_F32: {
            const auto* from = reinterpret_cast<const float*>(row) + first;
            for (int i = 0; i < count; ++i) store(i, from[i]);
            return;
        }
        case TSR_TYPE_F16: {
            const auto* from = reinterpret_cast<const simt::half_t*>(row) + first;
            for (int i = 0; i < count; ++i) store(i, simt::to_float(from[i]));
            return;
        }
        case TSR_TYPE_BF16: {
            const auto* from = reinterpret_cast<const simt::bfloat16_t*>(row) + first;
            for (int i = 0; i < count; ++i) store(i, simt::to_float(from[i]));
            return;
        }
#define TESSERA_DECODE(id, Name)                                                                          \
    case TSR_TYPE_##id: {                                                                                 \
        float values[kCacheBlock];                                                                        \
        formats::decode(reinterpret_cast<const formats::Block##Name*>(row)[first / kCacheBlock], values); \
        for (int i = 0; i < kCacheBlock; ++i) store(i, values[i]);                                        \
        return;                                                                                           \
    }
            TESSERA_CACHED_BLOCKS(TESSERA_DECODE)
#undef TESSERA_DECODE
        case TSR_TYPE_Q8_KV: {
            using Block = formats::BlockQ8KV;
            const auto* blocks = reinterpret_cast<const Block*>(row + Block::kRowHead);
            float values[kCacheBlock];
            formats::decode(blocks[first / kCacheBlock], *reinterpret_cast<const float*>(row), values);
            for (int i = 0; i < kCacheBlock; ++i) store(i, values[i]);
            return;
        }
        default:
            return;
    }
}

// Of a type with blocks.
SIMT_DEVICE void encode_cached_block(int type, const float* from, char* row, int block) {
    switch (type) {
#define TESSERA_ENCODE(id, Name)                                                    \
    case TSR_TYPE_##id:                                                             \
        formats::encode(from, reinterpret_cast<formats::Block##Name*>(row)[block]); \
        return;
        TESSERA_CACHED_BLOCKS(TESSERA_ENCODE)
#undef TESSERA_ENCODE
        default:
            return;
    }
}

// The page of a token; -1 if there is none.
SIMT_DEVICE int page_of(const Pages& p, int position, int sequence) {
    if (position < 0 || position / kPageTokens >= p.positions || sequence < 0 || sequence >= p.sequences) return -1;
    const int page = *reinterpret_cast<const int32_t*>(
        static_cast<const char*>(p.table) + position / kPageTokens * p.by_position + sequence * p.by_sequence);
    return page >= 0 && page < p.pages ? page : -1;
}

}  // namespace tessera::cuda_kernels
