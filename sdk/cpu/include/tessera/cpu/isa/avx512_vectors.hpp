// What attention needs of a vector unit, on AVX-512 (F, BW, DQ, VL), without and with VNNI. What an operation means is
// described in avx2_vectors.hpp. Elements in blocks of int16 are in their natural order.
#pragma once

#include <tessera/cpu/isa/avx512_instructions.hpp>
#include <tessera/cpu/isa/magnitudes.hpp>

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa {

struct Avx512Vectors {
    static constexpr int kLanes = 16;
    // Of 32 registers: 24 sums, operands and a temporary.
    static constexpr int kTileRows1 = 24;
    static constexpr int kTileRows2 = 12;
    // Values have a multiple of 32 elements: what tiles of 24 and of 12 leave are eights and fours.
    static constexpr int kRestRows1 = 8;
    static constexpr int kRestRows2 = 4;

    using Plain = Avx512Vectors;
    using Floats = __m512;
    using Ints = __m512i;

    static Floats load(const float* p) noexcept { return _mm512_loadu_ps(p); }
    static Floats load_first(const float* p, int count) noexcept {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
    }
    static void store(float* p, Floats v) noexcept { _mm512_storeu_ps(p, v); }
    static Floats zero() noexcept { return _mm512_setzero_ps(); }
    static Floats splat(float v) noexcept { return _mm512_set1_ps(v); }
    static Floats broadcast(const float* p) noexcept { return _mm512_set1_ps(*p); }
    static Floats add(Floats a, Floats b) noexcept { return _mm512_add_ps(a, b); }
    static Floats subtract(Floats a, Floats b) noexcept { return _mm512_sub_ps(a, b); }
    static Floats multiply(Floats a, Floats b) noexcept { return _mm512_mul_ps(a, b); }
    static Floats divide(Floats a, Floats b) noexcept { return _mm512_div_ps(a, b); }
    static Floats maximum(Floats a, Floats b) noexcept { return _mm512_max_ps(a, b); }
    static Floats minimum(Floats a, Floats b) noexcept { return _mm512_min_ps(a, b); }
    static Floats fma(Floats a, Floats b, Floats c) noexcept { return _mm512_fmadd_ps(a, b, c); }
    static Floats magnitude(Floats a) noexcept { return _mm512_andnot_ps(_mm512_set1_ps(-0.0f), a); }
    static float sum(Floats v) noexcept {
        const __m256 h = _mm256_add_ps(low_half(v), high_half(v));
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
    }
    static float largest(Floats v) noexcept {
        const __m256 h = _mm256_max_ps(low_half(v), high_half(v));
        __m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
        s = _mm_max_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
    }
    static void prefetch(const void* p) noexcept { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
    // Assembly, because GCC removes the intrinsic from some loops.
    static void prefetch_far(const void* p) noexcept {
        asm volatile("prefetcht1 %0" : : "m"(*static_cast<const char*>(p)));
    }
    static Floats power_of_two(Floats n) noexcept {
        const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
        return _mm512_castsi512_ps(_mm512_slli_epi32(e, 23));
    }
    static Floats round(Floats v) noexcept {
        return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    }
    static Floats where_not_less(Floats a, Floats b, Floats v) noexcept {
        return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(a, b, _CMP_GE_OQ), v);
    }
    static Floats hide(Floats v, const int32_t* limits, int32_t token, Floats hidden) noexcept {
        const __mmask16 past = _mm512_cmpgt_epi32_mask(_mm512_set1_epi32(token), _mm512_loadu_si512(limits));
        return _mm512_mask_mov_ps(v, past, hidden);
    }
    // Sixteen rows of kLanes columns to kLanes rows of sixteen: quarters of vectors first, then their places.
    static void transpose(Floats* r) noexcept {
        Floats q[16];
        for (int i = 0; i < 16; i += 4) {
            const Floats a = _mm512_unpacklo_ps(r[i], r[i + 1]), b = _mm512_unpackhi_ps(r[i], r[i + 1]);
            const Floats c = _mm512_unpacklo_ps(r[i + 2], r[i + 3]), d = _mm512_unpackhi_ps(r[i + 2], r[i + 3]);
            q[i] = _mm512_shuffle_ps(a, c, 0x44);
            q[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
            q[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
            q[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
        }
        for (int i = 0; i < 4; ++i) {
            const Floats a = _mm512_shuffle_f32x4(q[i], q[i + 4], 0x88), b = _mm512_shuffle_f32x4(q[i], q[i + 4], 0xDD);
            const Floats c = _mm512_shuffle_f32x4(q[i + 8], q[i + 12], 0x88);
            const Floats d = _mm512_shuffle_f32x4(q[i + 8], q[i + 12], 0xDD);
            r[i] = _mm512_shuffle_f32x4(a, c, 0x88);
            r[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
            r[i + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
            r[i + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
        }
    }

    static Floats sums_of(const Floats (&r)[16]) noexcept {
        Floats four[4];  // in each quarter: a part of the sums of four vectors
        for (int i = 0; i < 4; ++i) {
            const Floats* v = r + 4 * i;
            const Floats a = add(_mm512_unpacklo_ps(v[0], v[1]), _mm512_unpackhi_ps(v[0], v[1]));
            const Floats b = add(_mm512_unpacklo_ps(v[2], v[3]), _mm512_unpackhi_ps(v[2], v[3]));
            four[i] = add(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
        }
        const auto halves = [](Floats a, Floats b) {
            return add(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
        };
        return halves(halves(four[0], four[1]), halves(four[2], four[3]));
    }

    template <int V>
    static void accumulate(Floats (&sums)[V], const Floats (&lanes)[V], const float* p) noexcept {
        avx512::accumulate<V>(sums, lanes, p);
    }
    template <int V>
    static void accumulate(Ints (&sums)[V], const Ints (&lanes)[V], const int16_t* p) noexcept {
        avx512::accumulate<V>(sums, lanes, p);
    }

    static Ints load_ints(const int16_t* p) noexcept { return _mm512_loadu_si512(p); }
    static void store_ints(int16_t* p, Ints v) noexcept { _mm512_storeu_si512(p, v); }
    static Ints zero_ints() noexcept { return _mm512_setzero_si512(); }
    static Floats to_floats(Ints v) noexcept { return _mm512_cvtepi32_ps(v); }
    static Ints pair(Floats first, Floats second) noexcept {
        return _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_cvtps_epi32(first),
                                       _mm512_slli_epi32(_mm512_cvtps_epi32(second), 16));
    }

    static constexpr int place_of(int element) noexcept { return element; }

    static void int16_from_floats(const float* x, float factor, int16_t* to) noexcept {
        const Floats f = splat(factor);
        store_int16(multiply(f, load(x)), multiply(f, load(x + 16)), to);
    }
    static void int16_from_f16(const uint16_t* x, float factor, int16_t* to) noexcept {
        const Floats f = splat(factor);
        store_int16(multiply(f, from_f16(x)), multiply(f, from_f16(x + 16)), to);
    }
    static void int16_from_bf16(const uint16_t* x, float factor, int16_t* to) noexcept {
        const Floats f = splat(factor);
        store_int16(multiply(f, from_bf16(x)), multiply(f, from_bf16(x + 16)), to);
    }
    static void int16_from_bytes(const int8_t* x, int16_t ratio, int16_t* to) noexcept {
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
        const __m512i high = _mm512_slli_epi16(_mm512_cvtepi8_epi16(b), 8);
        store_ints(to, _mm512_mulhrs_epi16(high, _mm512_set1_epi16(ratio)));
    }
    static float largest_of_f16(const uint16_t* x, int count) noexcept {
        return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(largest_uint16(x, count))));
    }
    static float largest_of_bf16(const uint16_t* x, int count) noexcept {
        return std::bit_cast<float>(static_cast<uint32_t>(largest_uint16(x, count)) << 16);
    }
    static float largest_of_floats(const float* x, int count) noexcept {
        const __m512i mask = _mm512_set1_epi32(0x7FFFFFFF);
        __m512i m = _mm512_setzero_si512();
        for (int i = 0; i < count; i += 16) m = _mm512_max_epi32(m, _mm512_and_si512(_mm512_loadu_si512(x + i), mask));
        return largest_magnitude(_mm256_max_epi32(_mm512_castsi512_si256(m), _mm512_extracti64x4_epi64(m, 1)));
    }
    static void to_int16(int16_t* p, Floats v) noexcept {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtsepi32_epi16(_mm512_cvtps_epi32(v)));
    }
    // Two rows of 32 int16 to the pairs that interleave() gives, in registers.
    static void unpack(Ints first, Ints second, Ints (&pairs)[2]) noexcept {
        pairs[0] = _mm512_unpacklo_epi16(first, second);
        pairs[1] = _mm512_unpackhi_epi16(first, second);
    }
    static void interleave(const int16_t* first, const int16_t* second, int16_t* pairs) noexcept {
        const __m512i a = load_ints(first), b = load_ints(second);
        store_ints(pairs, _mm512_unpacklo_epi16(a, b));
        store_ints(pairs + 32, _mm512_unpackhi_epi16(a, b));
    }
    static constexpr int pair_place_of(int place) noexcept {
        const int i = place % 32;
        return place - i + i / 4 % 2 * 16 + i / 8 * 4 + i % 4;
    }

    static Floats from_f16(const uint16_t* p) noexcept {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static float from_one_f16(uint16_t half) noexcept { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half))); }
    static Floats from_s8(const int8_t* p) noexcept {
        return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
    }
    static Floats from_bf16(const uint16_t* p) noexcept {
        const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
    }

  private:
    static __m512i lane_numbers() noexcept {
        return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    // Numbers of [-32767, 32767], rounded. Packing works on quarters of vectors.
    static void store_int16(Floats first, Floats second, int16_t* to) noexcept {
        const __m512i packed = _mm512_packs_epi32(_mm512_cvtps_epi32(first), _mm512_cvtps_epi32(second));
        store_ints(to, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed));
    }
    static __m256 low_half(Floats v) noexcept { return _mm512_castps512_ps256(v); }
    static __m256 high_half(Floats v) noexcept {
        return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    }
    static int largest_uint16(const uint16_t* x, int count) noexcept {
        const __m512i mask = _mm512_set1_epi16(0x7FFF);
        __m512i m = _mm512_setzero_si512();
        for (int i = 0; i < count; i += 32) m = _mm512_max_epu16(m, _mm512_and_si512(_mm512_loadu_si512(x + i), mask));
        const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(m), _mm512_extracti64x4_epi64(m, 1));
        const __m128i all = _mm_set1_epi16(-1);
        const __m128i h = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        return _mm_cvtsi128_si32(_mm_xor_si128(_mm_minpos_epu16(_mm_xor_si128(h, all)), all)) & 0xFFFF;
    }
};

struct Avx512VnniVectors : Avx512Vectors {
    using Avx512Vectors::accumulate;
    template <int V>
    static void accumulate(Ints (&sums)[V], const Ints (&lanes)[V], const int16_t* p) noexcept {
        avx512::accumulate_vnni<V>(sums, lanes, p);
    }

    // ---- Bytes. What an operation means is described in avx2_vectors.hpp. ----

    static constexpr int kByteSums = 16;
    template <int V>
    static void accumulate_bytes(Ints (&sums)[V], const Ints (&lanes)[V], const int8_t* p) noexcept {
        avx512::accumulate_bytes<V>(sums, lanes, p);
    }
    static void accumulate_signed_bytes(Ints& sum, Ints lanes, const uint8_t* p) noexcept {
        avx512::accumulate_signed_bytes(sum, lanes, p);
    }
    static Ints add_ints(Ints a, Ints b) noexcept { return _mm512_add_epi32(a, b); }
    static Ints subtract_ints(Ints a, Ints b) noexcept { return _mm512_sub_epi32(a, b); }
    static Ints broadcast_ints(const int32_t* p) noexcept { return _mm512_set1_epi32(*p); }
    static Ints load_sums(const int32_t* p) noexcept { return _mm512_loadu_si512(p); }
    static void store_sums(int32_t* p, Ints v) noexcept { _mm512_storeu_si512(p, v); }
    static Ints load_bytes(const void* p) noexcept { return _mm512_loadu_si512(p); }
    static void store_bytes(void* p, Ints v) noexcept { _mm512_storeu_si512(p, v); }
    static Ints keys_of_values(Ints v) noexcept {
        constexpr int kFirst = 0x0C080400, kSecond = 0x0E0A0602, kThird = 0x0D090501, kFourth = 0x0F0B0703;
        const __m512i columns = _mm512_setr_epi32(kFirst, kSecond, kThird, kFourth, kFirst, kSecond, kThird, kFourth,
                                                  kFirst, kSecond, kThird, kFourth, kFirst, kSecond, kThird, kFourth);
        return _mm512_shuffle_epi8(_mm512_xor_si512(v, _mm512_set1_epi8(-128)), columns);
    }
    static Ints shift_bytes(Ints high) noexcept { return _mm512_slli_epi32(high, 8); }
    static Ints add_pairs(Ints a, Ints b) noexcept { return _mm512_add_epi16(a, b); }
    static Ints multiply_pairs(Ints a, Ints b) noexcept { return _mm512_mulhrs_epi16(a, b); }
    static Ints low_bytes(Ints a, Ints b) noexcept {
        return _mm512_mask_blend_epi8(kOddBytes, a, _mm512_slli_epi32(b, 8));
    }
    static Ints high_bytes(Ints a, Ints b) noexcept {
        return _mm512_mask_blend_epi8(kOddBytes, _mm512_srli_epi32(a, 8), b);
    }
    static Ints where_zero(Floats x, Ints v) noexcept {
        return _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(x, zero(), _CMP_EQ_OQ), v);
    }
    static bool any_zero(Floats x) noexcept { return _mm512_cmp_ps_mask(x, zero(), _CMP_EQ_OQ) != 0; }

  private:
    static constexpr __mmask64 kOddBytes = 0xAAAAAAAAAAAAAAAAu;
};

}  // namespace tessera::cpu::isa
