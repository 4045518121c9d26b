// In place of the header of this name in the kit: the same functions of intrinsics, which SIMDe has.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa::avx512 {

inline __m512i in_order(__m512i v) noexcept {
    return v;
}
inline __m512i add_byte_products(__m512i sums, __m512i unsigned_bytes, __m512i signed_bytes) noexcept {
    return _mm512_dpbusd_epi32(sums, unsigned_bytes, signed_bytes);
}
inline __m512i pair_in_every_lane(const int16_t* p) noexcept {
    int32_t pair;
    std::memcpy(&pair, p, sizeof pair);
    return _mm512_set1_epi32(pair);
}

template <int V>
inline void accumulate(__m512 (&sums)[V], const __m512 (&lanes)[V], const float* p) noexcept {
    for (int v = 0; v < V; ++v) sums[v] = _mm512_fmadd_ps(lanes[v], _mm512_set1_ps(*p), sums[v]);
}
template <int V>
inline void accumulate(__m512i (&sums)[V], const __m512i (&lanes)[V], const int16_t* p) noexcept {
    for (int v = 0; v < V; ++v) sums[v] = _mm512_add_epi32(sums[v], _mm512_madd_epi16(lanes[v], pair_in_every_lane(p)));
}
template <int V>
inline void accumulate_vnni(__m512i (&sums)[V], const __m512i (&lanes)[V], const int16_t* p) noexcept {
    for (int v = 0; v < V; ++v) sums[v] = _mm512_dpwssd_epi32(sums[v], lanes[v], pair_in_every_lane(p));
}

template <int V>
inline void accumulate_bytes(__m512i (&sums)[V], const __m512i (&lanes)[V], const int8_t* p) noexcept {
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    for (int v = 0; v < V; ++v) sums[v] = _mm512_dpbusd_epi32(sums[v], lanes[v], _mm512_set1_epi32(four));
}

inline void accumulate_signed_bytes(__m512i& sum, __m512i lanes, const uint8_t* p) noexcept {
    int32_t four;
    std::memcpy(&four, p, sizeof four);
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi32(four), lanes);
}

}  // namespace tessera::cpu::isa::avx512
