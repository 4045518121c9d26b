// Arithmetic on sizes that come from outside. Every function throws Error(TSR_CORRUPT_DATA) instead of wrapping around;
// `what` names the quantity in the message.
#pragma once

#include "core/base/error.hpp"

#include <concepts>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace tessera {

template <std::unsigned_integral T>
T checked_add(T a, T b, std::string_view what) {
    T sum;
    if (__builtin_add_overflow(a, b, &sum)) fail(TSR_CORRUPT_DATA, "{}: {} + {} overflows", what, a, b);
    return sum;
}

template <std::unsigned_integral T>
T checked_mul(T a, T b, std::string_view what) {
    T product;
    if (__builtin_mul_overflow(a, b, &product)) fail(TSR_CORRUPT_DATA, "{}: {} * {} overflows", what, a, b);
    return product;
}

// `value` rounded up to a multiple of `alignment` (a power of two).
inline uint64_t checked_align_up(uint64_t value, uint64_t alignment, std::string_view what) {
    return checked_add(value, alignment - 1, what) & ~(alignment - 1);
}

// Converts between integer types if the value survives.
template <std::integral To, std::integral From>
To checked_cast(From value, std::string_view what) {
    if (!std::in_range<To>(value)) fail(TSR_CORRUPT_DATA, "{}: {} is out of range", what, value);
    return static_cast<To>(value);
}

}  // namespace tessera
