// The part of the policies of processors with VNNI, for attention in bytes, that does not depend on the width of
// vectors.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tessera::cpu::isa {

// Vectors: the policy itself, whose add_byte_products() adds the products of four unsigned with four signed bytes to
// each of eight sums.
template <class Vectors>
struct VnniBytes {
    // A block of 32 signed bytes of each of four rows, whose f16 scales are 16 bits of `halves` each. To scales[0 ..
    // 4): these. To sums[0 .. 4): -128 times the sum of each row. To `mixed`, if it is not null: the four bytes of each
    // element, elements in the order of mixed_place_of(), rows in the order 0 2 1 3. A row is negated there if its
    // scale is negative.
    static void mix_rows(const int8_t* const (&rows)[4], uint64_t halves, float* scales, int32_t* sums,
                         int8_t* mixed) noexcept {
        _mm_storeu_ps(scales, _mm_cvtph_ps(_mm_cvtsi64_si128(static_cast<int64_t>(halves))));
        __m256i c[4], s[4];
        for (int i = 0; i < 4; ++i) {
            c[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows[i]));
            s[i] = Vectors::add_byte_products(_mm256_setzero_si256(), _mm256_set1_epi8(1), c[i]);
        }
        const __m256i ones = _mm256_set1_epi16(1);
        const __m256i a = _mm256_madd_epi16(_mm256_packs_epi32(s[0], s[1]), ones);
        const __m256i b = _mm256_madd_epi16(_mm256_packs_epi32(s[2], s[3]), ones);
        const __m256i all = _mm256_madd_epi16(_mm256_packs_epi32(a, b), _mm256_set1_epi16(-128));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(sums),
                         _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
        if (!mixed) return;
        if (halves & 0x8000800080008000u) {
            for (int i = 0; i < 4; ++i)
                c[i] = _mm256_sign_epi8(c[i], _mm256_set1_epi8(halves >> (16 * i + 15) & 1 ? -1 : 1));
        }
        const __m256i low[2] = {_mm256_unpacklo_epi8(c[0], c[2]), _mm256_unpacklo_epi8(c[1], c[3])};
        const __m256i high[2] = {_mm256_unpackhi_epi8(c[0], c[2]), _mm256_unpackhi_epi8(c[1], c[3])};
        auto* to = reinterpret_cast<__m256i*>(mixed);
        _mm256_storeu_si256(to, _mm256_unpacklo_epi16(low[0], low[1]));
        _mm256_storeu_si256(to + 1, _mm256_unpackhi_epi16(low[0], low[1]));
        _mm256_storeu_si256(to + 2, _mm256_unpacklo_epi16(high[0], high[1]));
        _mm256_storeu_si256(to + 3, _mm256_unpackhi_epi16(high[0], high[1]));
    }
    // 256 * high + low, of sums below 2^31.
    template <class Ints>
    static Ints join_bytes(Ints high, Ints low) noexcept {
        return Vectors::add_ints(Vectors::shift_bytes(high), low);
    }
    static constexpr int mixed_place_of(int element) noexcept {
        const int i = element % 32;
        return element - i + i % 16 / 4 * 8 + i / 16 * 4 + i % 4;
    }
};

}  // namespace tessera::cpu::isa
