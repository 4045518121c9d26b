// In place of the header of this name in the kit: the same functions of intrinsics of AVX2.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa::avx_vnni {

inline __m256i add_byte_products(__m256i sums, __m256i unsigned_bytes, __m256i signed_bytes) noexcept {
    // Even and odd bytes apart: sums of two of their products exceed 16 bits.
    const __m256i even = _mm256_madd_epi16(_mm256_and_si256(unsigned_bytes, _mm256_set1_epi16(0xFF)),
                                           _mm256_srai_epi16(_mm256_slli_epi16(signed_bytes, 8), 8));
    const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(unsigned_bytes, 8), _mm256_srai_epi16(signed_bytes, 8));
    return _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
}

template <int V>
inline void accumulate(__m256i (&sums)[V], const __m256i (&lanes)[V], const int16_t* p) noexcept {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    for (int v = 0; v < V; ++v)
        sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(lanes[v], _mm256_set1_epi32(pair)));
}

template <int V>
inline void accumulate_bytes(__m256i (&sums)[V], const __m256i (&lanes)[V], const int8_t* p) noexcept {
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    for (int v = 0; v < V; ++v) sums[v] = add_byte_products(sums[v], lanes[v], _mm256_set1_epi32(four));
}

inline void accumulate_signed_bytes(__m256i& sum, __m256i lanes, const uint8_t* p) noexcept {
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    sum = add_byte_products(sum, _mm256_set1_epi32(four), lanes);
}

}  // namespace tessera::cpu::isa::avx_vnni
