// The scratch memory of attention in bytes (byte_arithmetic.hpp), for vectors of `kVectorLanes` lanes. As
// Int16Operands.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"

#include <cstdint>

namespace tessera::cpu_x86::attention {

template <int kVectorLanes>
struct ByteOperands {
    static constexpr int kLanes = kVectorLanes;
    static constexpr int kPanel = 2 * kLanes;
    static constexpr int kBlock = 32;  // elements with one scale

    // A block of each key of a chunk.
    struct Block {
        int32_t sums[kChunk + kChunkPadding];  // of its codes, times -128
        float scales[kChunk + kChunkPadding];
    };
    struct Chunk {
        const char** keys;  // [kChunk + kChunkPadding] cached rows
        Block* blocks;      // [elements / kBlock]
        int8_t* values;     // [kChunk / 4][value_stride], of which [value][4], order of Isa::mixed_place_of
    };
    // A cache line more than the values need: neighbouring rows must not fall into the same sets of the first cache.
    static int64_t value_stride(const HeadShape& shape) noexcept { return 4 * int64_t{shape.padded_value()} + 64; }
    static Chunk take_chunk(Arena& arena, const HeadShape& shape) noexcept {
        Chunk chunk{};
        chunk.keys = arena.take<const char*>(kChunk + kChunkPadding);
        chunk.blocks = arena.take<Block>(shape.padded_key() / kBlock);
        chunk.values = arena.take<int8_t>(kChunk / 4 * value_stride(shape));
        return chunk;
    }

    // Of each vector of lanes in turn.
    struct Queries {
        uint8_t* codes;  // [vectors][padded elements / 4][lanes][4], 128 more than the number
        float* scales;   // [vectors][padded elements / kBlock][lanes]
    };
    static Queries take_queries(Arena& arena, int padded_elements) noexcept {
        Queries queries{};
        queries.codes = arena.take<uint8_t>(int64_t{padded_elements} * kPanel);
        queries.scales = arena.take<float>(padded_elements / kBlock * int64_t{kPanel});
        return queries;
    }

    struct Weights {
        float* scores;   // [kChunk + kChunkPadding][lanes]
        int16_t* pairs;  // [vectors][kChunk / 2][lanes of a vector][2]: weights, 32767 for one
        float* visible;  // [lanes]: tokens of the chunk that each may see
        float* rounded;  // [lanes]: half a unit of a weight's high byte where that is all of the weight, else 0
        uint8_t* bytes;  // [kChunk / 4][1 or 2][lanes of a vector][4]: a vector's weights for one block
    };
    static Weights take_weights(Arena& arena) noexcept {
        Weights weights{};
        weights.scores = arena.take<float>((kChunk + kChunkPadding) * int64_t{kPanel});
        weights.pairs = arena.take<int16_t>(kChunk * int64_t{kPanel});
        weights.visible = arena.take<float>(kPanel);
        weights.rounded = arena.take<float>(kPanel);
        weights.bytes = arena.take<uint8_t>(kChunk * int64_t{2 * kLanes});
        return weights;
    }
};

}  // namespace tessera::cpu_x86::attention
