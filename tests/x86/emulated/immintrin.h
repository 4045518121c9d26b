// In place of the compiler's header: AVX-512's intrinsics as SIMDe (libsimde-dev) makes them of AVX2's, and those that
// its version 0.7.4 lacks, by halves.
#pragma once

#pragma GCC system_header
#include_next <immintrin.h>

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512/abs.h>
#include <simde/x86/avx512/add.h>
#include <simde/x86/avx512/and.h>
#include <simde/x86/avx512/andnot.h>
#include <simde/x86/avx512/blend.h>
#include <simde/x86/avx512/cast.h>
#include <simde/x86/avx512/cmp.h>
#include <simde/x86/avx512/cmpgt.h>
#include <simde/x86/avx512/cvt.h>
#include <simde/x86/avx512/cvts.h>
#include <simde/x86/avx512/div.h>
#include <simde/x86/avx512/dpbusd.h>
#include <simde/x86/avx512/dpwssd.h>
#include <simde/x86/avx512/extract.h>
#include <simde/x86/avx512/fmadd.h>
#include <simde/x86/avx512/loadu.h>
#include <simde/x86/avx512/madd.h>
#include <simde/x86/avx512/maddubs.h>
#include <simde/x86/avx512/max.h>
#include <simde/x86/avx512/min.h>
#include <simde/x86/avx512/mov.h>
#include <simde/x86/avx512/mov_mask.h>
#include <simde/x86/avx512/mul.h>
#include <simde/x86/avx512/mulhrs.h>
#include <simde/x86/avx512/mullo.h>
#include <simde/x86/avx512/or.h>
#include <simde/x86/avx512/packs.h>
#include <simde/x86/avx512/permutex2var.h>
#include <simde/x86/avx512/permutexvar.h>
#include <simde/x86/avx512/roundscale.h>
#include <simde/x86/avx512/set1.h>
#include <simde/x86/avx512/setr.h>
#include <simde/x86/avx512/setzero.h>
#include <simde/x86/avx512/shuffle.h>
#include <simde/x86/avx512/slli.h>
#include <simde/x86/avx512/storeu.h>
#include <simde/x86/avx512/sub.h>
#include <simde/x86/avx512/unpackhi.h>
#include <simde/x86/avx512/unpacklo.h>
#include <simde/x86/avx512/xor.h>

#include <cstdint>
#include <cstring>

namespace tessera::tests::emulated {

template <class To, class Half>
inline To joined(Half low, Half high) {
    To v;
    std::memcpy(&v, &low, sizeof low);
    std::memcpy(reinterpret_cast<char*>(&v) + sizeof low, &high, sizeof high);
    return v;
}
template <class Half, class From>
inline Half half(const From& v, int i) {
    Half h;
    std::memcpy(&h, reinterpret_cast<const char*>(&v) + i * sizeof h, sizeof h);
    return h;
}

inline __m512 cvtepi32_ps(__m512i v) {
    return joined<__m512>(_mm256_cvtepi32_ps(half<__m256i>(v, 0)), _mm256_cvtepi32_ps(half<__m256i>(v, 1)));
}
inline __m512i cvtps_epi32(__m512 v) {
    return joined<__m512i>(_mm256_cvtps_epi32(half<__m256>(v, 0)), _mm256_cvtps_epi32(half<__m256>(v, 1)));
}
inline __m512i srai_epi32(__m512i v, unsigned bits) {
    const auto count = static_cast<int>(bits);
    return joined<__m512i>(_mm256_srai_epi32(half<__m256i>(v, 0), count),
                           _mm256_srai_epi32(half<__m256i>(v, 1), count));
}
inline __m512i cvtepi8_epi32(__m128i v) {
    return joined<__m512i>(_mm256_cvtepi8_epi32(v), _mm256_cvtepi8_epi32(_mm_srli_si128(v, 8)));
}
inline __m512i cvtepu16_epi32(__m256i v) {
    return joined<__m512i>(_mm256_cvtepu16_epi32(half<__m128i>(v, 0)), _mm256_cvtepu16_epi32(half<__m128i>(v, 1)));
}
inline __m512 cvtph_ps(__m256i v) {
    return joined<__m512>(_mm256_cvtph_ps(half<__m128i>(v, 0)), _mm256_cvtph_ps(half<__m128i>(v, 1)));
}
inline __m512 maskz_loadu_ps(__mmask16 mask, const float* p) {
    float v[16] = {};
    for (int i = 0; i < 16; ++i) {
        if (mask >> i & 1) v[i] = p[i];
    }
    return joined<__m512>(_mm256_loadu_ps(v), _mm256_loadu_ps(v + 8));
}

inline __m512i mask_i32gather_epi32(__m512i source, __mmask16 mask, __m512i places, const void* p, int scale) {
    int32_t v[16], at[16];
    std::memcpy(v, &source, sizeof v);
    std::memcpy(at, &places, sizeof at);
    for (int i = 0; i < 16; ++i) {
        if (mask >> i & 1) std::memcpy(&v[i], static_cast<const char*>(p) + int64_t{at[i]} * scale, 4);
    }
    std::memcpy(&source, v, sizeof v);
    return source;
}
inline __m256i cvtepi32_epi16(__m512i v) {
    int32_t wide[16];
    int16_t narrow[16];
    std::memcpy(wide, &v, sizeof wide);
    for (int i = 0; i < 16; ++i) narrow[i] = static_cast<int16_t>(wide[i]);
    __m256i result;
    std::memcpy(&result, narrow, sizeof narrow);
    return result;
}

}  // namespace tessera::tests::emulated

// These SIMDe has, but not under Intel's names, or with the arguments of another function.
#undef _mm512_shuffle_f32x4
#define _mm512_shuffle_f32x4(a, b, order) simde_mm512_shuffle_f32x4(a, b, order)
#undef _mm512_madd_epi16
#define _mm512_madd_epi16 simde_mm512_madd_epi16
#define _mm512_cvtepi32_ps tessera::tests::emulated::cvtepi32_ps
#define _mm512_cvtps_epi32 tessera::tests::emulated::cvtps_epi32
#undef _mm512_srai_epi32
#define _mm512_srai_epi32 tessera::tests::emulated::srai_epi32
#define _mm512_cvtepi8_epi32 tessera::tests::emulated::cvtepi8_epi32
#define _mm512_cvtepu16_epi32 tessera::tests::emulated::cvtepu16_epi32
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps tessera::tests::emulated::cvtph_ps
#define _mm512_cvtepi32_epi16 tessera::tests::emulated::cvtepi32_epi16
#undef _mm512_mask_i32gather_epi32
#define _mm512_mask_i32gather_epi32 tessera::tests::emulated::mask_i32gather_epi32
#undef _mm512_maskz_loadu_ps
#define _mm512_maskz_loadu_ps tessera::tests::emulated::maskz_loadu_ps
