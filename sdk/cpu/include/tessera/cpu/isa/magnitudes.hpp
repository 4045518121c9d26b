// Reductions that the vector units share. The including file brings the compiler flags.
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
// Of `count` floats, a multiple of 8.
inline float largest_magnitude(const float* x, int count) noexcept {
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i m = _mm256_setzero_si256();
    for (int i = 0; i < count; i += 8) {
        const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
        m = _mm256_max_epi32(m, _mm256_and_si256(v, mask));
    }
    return largest_magnitude(m);
}

}  // namespace tessera::cpu::isa
