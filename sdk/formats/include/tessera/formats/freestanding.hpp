// All that the formats need of a standard library, so that NVRTC, which has none, compiles them too.
#pragma once

#include <tessera/types.h>

// NVRTC: memcpy, fabsf and roundf are built in, <stdint.h> is handed to it beside the sources, and its option
// -default-device makes these functions device functions.
#if !defined(__CUDACC_RTC__)
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

namespace tessera::formats {

// std::bit_cast.
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
    return __builtin_bit_cast(To, from);
}

// 1 if an odd number of the low 8 bits is set, else 0.
constexpr uint32_t parity(uint32_t bits) noexcept {
    return 0x6996u >> ((bits ^ bits >> 4) & 15u) & 1u;
}

}  // namespace tessera::formats
