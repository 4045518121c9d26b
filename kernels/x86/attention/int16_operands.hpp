// The scratch memory of attention in 16-bit integers (int16_arithmetic.hpp), for vectors of `kVectorLanes` lanes. Plans
// need its size, so it knows no instruction set.
#pragma once

#include "../kit.hpp"
#include "shape.hpp"

#include <tessera/tensor.h>

#include <cstdint>

namespace tessera::x86::attention {

template <int kVectorLanes>
struct Int16Operands {
    static constexpr int kLanes = kVectorLanes;
    static constexpr int kPanel = 2 * kLanes;  // lanes of a full panel

    // Tokens of a strip. Written by one worker, for itself.
    struct Strip {
        int16_t* keys;         // [kStrip + kStripPadding][padded_key], order of Isa::place_of
        int16_t* values;       // [kStrip / 2][value_stride], of which [padded_value][2], order of Isa::pair_place_of
        int16_t* value_rows;   // [2][padded_value]: the last two values while values are a cache of their own
        float* key_scales[2];  // [kStrip + kStripPadding], of each part
        float* value_scales;   // [kStrip]; key_scales[0] if the value is a prefix of the key
    };
    // A cache line more than the pairs need: neighbouring rows must not fall into the same sets of the first cache.
    static int64_t value_stride(const HeadShape& shape) noexcept { return 2 * int64_t{shape.padded_value()} + 32; }
    static Strip take_strip(Arena& arena, const HeadShape& shape) noexcept {
        Strip strip{};
        strip.keys = arena.take<int16_t>((kStrip + kStripPadding) * int64_t{shape.padded_key()});
        strip.values = arena.take<int16_t>(kStrip / 2 * value_stride(shape));
        strip.key_scales[0] = arena.take<float>(kStrip + kStripPadding);
        strip.key_scales[1] = arena.take<float>(kStrip + kStripPadding);
        if (shape.prefix) {
            strip.value_scales = strip.key_scales[0];
        } else {
            strip.value_rows = arena.take<int16_t>(2 * int64_t{shape.padded_value()});
            strip.value_scales = arena.take<float>(kStrip);
        }
        return strip;
    }

    // Queries of a panel, or rows of a weight that are multiplied with cached rows as queries are.
    struct Queries {
        int16_t* values;   // [padded elements / 2][lanes][2], order of Isa::place_of
        float* scales[2];  // [lanes], of each part
    };
    static Queries take_queries(Arena& arena, int padded_elements) noexcept {
        Queries queries{};
        queries.values = arena.take<int16_t>(int64_t{padded_elements} * kPanel);
        queries.scales[0] = arena.take<float>(kPanel);
        queries.scales[1] = arena.take<float>(kPanel);
        return queries;
    }

    // Values of a strip that are the first elements of rows in int16: runs of TSR_PAGE_TOKENS rows, `stride` elements
    // apart. After an odd number of tokens there is one more row, which may hold anything.
    struct ValueRows {
        const int16_t* runs[kStrip / TSR_PAGE_TOKENS];
        int64_t stride;
    };

    // What the lanes of a panel make of a strip.
    struct Weights {
        float* scores;    // [kStrip + kStripPadding][lanes]
        int16_t* values;  // [kStrip / 2][lanes][2]
    };
    static Weights take_weights(Arena& arena) noexcept {
        Weights weights{};
        weights.scores = arena.take<float>((kStrip + kStripPadding) * int64_t{kPanel});
        weights.values = arena.take<int16_t>(kStrip * int64_t{kPanel});
        return weights;
    }
};

}  // namespace tessera::x86::attention
