// Loops over registers.
#pragma once

#include "../kit.hpp"

#include <type_traits>
#include <utility>

namespace tessera::x86::attention {

// body(integral_constant 0), .., body(integral_constant N - 1), written out, so that arrays indexed by it become
// registers. GCC leaves the bodies of large functions out of line, and the arrays in memory, unless they are declared
// always_inline.
template <int N, class Body>
[[gnu::always_inline]] inline void unrolled(Body&& body) {
    [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        (body(std::integral_constant<int, I>{}), ...);
    }
    (std::make_integer_sequence<int, N>{});
}

}  // namespace tessera::x86::attention
