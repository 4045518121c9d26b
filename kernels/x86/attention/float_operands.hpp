// The scratch memory of attention in f32 (float_arithmetic.hpp), for vectors of `kVectorLanes` lanes. As Int16Operands.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"

#include <cstdint>

namespace tessera::x86::attention {

template <int kVectorLanes>
struct FloatOperands {
    static constexpr int kLanes = kVectorLanes;
    static constexpr int kPanel = 2 * kLanes;

    struct Chunk {
        float* keys;    // [kChunk + kChunkPadding][padded_key]
        float* values;  // [kChunk][value_stride]; keys if the value is a prefix of the key
        int64_t value_stride;
    };
    static Chunk take_chunk(Arena& arena, const HeadShape& shape) noexcept {
        Chunk chunk{};
        chunk.keys = arena.take<float>((kChunk + kChunkPadding) * int64_t{shape.padded_key()});
        chunk.values = shape.prefix ? chunk.keys : nullptr;
        chunk.value_stride = shape.padded_key();
        if (!shape.prefix) {
            // A cache line more: neighbouring rows must not fall into the same sets of the first cache.
            chunk.value_stride = shape.padded_value() + 16;
            chunk.values = arena.take<float>(kChunk * chunk.value_stride);
        }
        return chunk;
    }

    struct Queries {
        float* numbers;  // [padded elements][lanes]
    };
    static Queries take_queries(Arena& arena, int padded_elements) noexcept {
        return {arena.take<float>(int64_t{padded_elements} * kPanel)};
    }

    struct Weights {
        float* scores;  // [kChunk + kChunkPadding][lanes]; weights after softmax
    };
    static Weights take_weights(Arena& arena) noexcept {
        return {arena.take<float>((kChunk + kChunkPadding) * int64_t{kPanel})};
    }
};

}  // namespace tessera::x86::attention
