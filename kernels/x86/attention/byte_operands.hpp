// The scratch memory of attention in bytes (byte_arithmetic.hpp), for vectors of `kVectorLanes` lanes. As
// Int16Operands.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"

#include <tessera/tensor.h>

#include <cstdint>

namespace tessera::x86::attention {

template <int kVectorLanes>
struct ByteOperands {
    static constexpr int kLanes = kVectorLanes;
    static constexpr int kPanel = 2 * kLanes;
    static constexpr int kBlock = 32;  // elements with one scale

    static constexpr int kTile = 8;  // keys that are multiplied together
    // More than a strip's, or blocks would be 512 bytes apart and fall into few sets of the first cache.
    static constexpr int kScalesOfBlock = kStrip + 16;

    struct Strip {
        const int8_t* codes[kStrip / TSR_PAGE_TOKENS];  // of each page, as BytePages has them
        int64_t stride;                                 // of four tokens in them
        float* scales;                                  // [elements / kBlock][kScalesOfBlock]
        uint8_t* tile;  // [elements / kBlock][kTile / 4][kBlock / 4][token 4][element 4]: keys' codes plus 128
    };
    // With room for so many tokens in `tile`: tiles of kTile one behind another.
    static Strip take_strip(Arena& arena, const HeadShape& shape, int tile_tokens = kTile) noexcept {
        Strip strip{};
        strip.scales = arena.take<float>(shape.padded_key() / kBlock * int64_t{kScalesOfBlock});
        strip.tile = arena.take<uint8_t>(int64_t{shape.padded_key()} * tile_tokens);
        return strip;
    }

    // Of each vector of lanes in turn.
    struct Queries {
        int8_t* codes;  // [vectors][elements / 4][lanes][4]
        int32_t* sums;  // [vectors][elements / kBlock][lanes]: of a block's codes, times -128
        float* scales;  // [vectors][elements / kBlock][lanes]
    };
    static Queries take_queries(Arena& arena, int padded_elements) noexcept {
        const int64_t blocks = padded_elements / kBlock * int64_t{kPanel};
        Queries queries{};
        queries.codes = arena.take<int8_t>(int64_t{padded_elements} * kPanel);
        queries.sums = arena.take<int32_t>(blocks);
        queries.scales = arena.take<float>(blocks);
        return queries;
    }

    struct Weights {
        float* scores;   // [kStrip + kStripPadding][lanes]
        int16_t* pairs;  // [vectors][kStrip / 2][lanes of a vector][2]: weights, 32767 for one
        float* visible;  // [lanes]: tokens of the strip that each may see
        float* rounded;  // [lanes]: half a unit of a weight's high byte where that is all of the weight, else 0
        uint8_t* bytes;  // [kStrip / 4][1 or 2][lanes of a vector][4]: a vector's weights for one block
        // With a window: the last token that each lane sees, and which lane's first one is the strip's first.
        const int32_t* limits;
        int32_t limit_of_first;
    };
    static Weights take_weights(Arena& arena) noexcept {
        Weights weights{};
        weights.scores = arena.take<float>((kStrip + kStripPadding) * int64_t{kPanel});
        weights.pairs = arena.take<int16_t>(kStrip * int64_t{kPanel});
        weights.visible = arena.take<float>(kPanel);
        weights.rounded = arena.take<float>(kPanel);
        weights.bytes = arena.take<uint8_t>(kStrip * int64_t{2 * kLanes});
        return weights;
    }
};

}  // namespace tessera::x86::attention
