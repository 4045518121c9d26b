// A reduction that the vector units share. The including file brings the compiler flags.
#pragma once

#include <immintrin.h>

#include <bit>

namespace tessera::cpu::isa {

// The largest of eight magnitudes of floats, compared as integers: a NaN is larger than any number.
inline float largest_magnitude(__m256i magnitudes) noexcept {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128(magnitudes), _mm256_extracti128_si256(magnitudes, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4E));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0xB1));
    return std::bit_cast<float>(_mm_cvtsi128_si32(m));
}

}  // namespace tessera::cpu::isa
