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

    struct Strip {
        float* keys;    // [kStrip + kStripPadding][padded_key]
        float* values;  // [kStrip][value_stride]; keys if the value is a prefix of the key
        int64_t value_stride;
    };
    static Strip take_strip(Arena& arena, const HeadShape& shape) noexcept {
        Strip strip{};
        strip.keys = arena.take<float>((kStrip + kStripPadding) * int64_t{shape.padded_key()});
        strip.values = shape.prefix ? strip.keys : nullptr;
        strip.value_stride = shape.padded_key();
        if (!shape.prefix) {
            // A cache line more: neighbouring rows must not fall into the same sets of the first cache.
            strip.value_stride = shape.padded_value() + 16;
            strip.values = arena.take<float>(kStrip * strip.value_stride);
        }
        return strip;
    }

    struct Queries {
        float* numbers;  // [padded elements][lanes]
    };
    static Queries take_queries(Arena& arena, int padded_elements) noexcept {
        return {arena.take<float>(int64_t{padded_elements} * kPanel)};
    }

    struct Weights {
        float* scores;  // [kStrip + kStripPadding][lanes]; weights after softmax
    };
    static Weights take_weights(Arena& arena) noexcept {
        return {arena.take<float>((kStrip + kStripPadding) * int64_t{kPanel})};
    }
};

}  // namespace tessera::x86::attention
