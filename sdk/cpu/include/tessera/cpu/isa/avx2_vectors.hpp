// What attention and the ops that look at one row at a time need of a vector unit, on AVX2 with FMA and F16C. In
// attention, lanes are queries: heads of a token or rows of a prompt. The including file brings the compiler flags.
#pragma once

#include <tessera/cpu/isa/avx_vnni_instructions.hpp>
#include <tessera/cpu/isa/magnitudes.hpp>

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa {

struct Avx2Vectors {
    static constexpr int kLanes = 8;
    // Rows of the register tile for one and for two vectors of lanes: sums, operands and a temporary fill 16 registers.
    static constexpr int kTileRows1 = 12;
    static constexpr int kTileRows2 = 6;
    // Of tiles for what these leave of a multiple of 32.
    static constexpr int kRestRows1 = 4;
    static constexpr int kRestRows2 = 2;

    // The same without VNNI: code that has no integers is compiled once for both.
    using Plain = Avx2Vectors;
    using Floats = __m256;
    using Ints = __m256i;  // one 32-bit integer, two int16 or four bytes a lane

    static Floats load(const float* p) noexcept { return _mm256_loadu_ps(p); }
    // The first `count` (0 .. kLanes) floats at p, zeros after them; what lies past them is not touched.
    static Floats load_first(const float* p, int count) noexcept {
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane));
    }
    static void store(float* p, Floats v) noexcept { _mm256_storeu_ps(p, v); }
    static Floats zero() noexcept { return _mm256_setzero_ps(); }
    static Floats splat(float v) noexcept { return _mm256_set1_ps(v); }
    static Floats broadcast(const float* p) noexcept { return _mm256_broadcast_ss(p); }
    static Floats add(Floats a, Floats b) noexcept { return _mm256_add_ps(a, b); }
    static Floats subtract(Floats a, Floats b) noexcept { return _mm256_sub_ps(a, b); }
    static Floats multiply(Floats a, Floats b) noexcept { return _mm256_mul_ps(a, b); }
    static Floats divide(Floats a, Floats b) noexcept { return _mm256_div_ps(a, b); }
    static Floats maximum(Floats a, Floats b) noexcept { return _mm256_max_ps(a, b); }
    static Floats minimum(Floats a, Floats b) noexcept { return _mm256_min_ps(a, b); }
    static Floats fma(Floats a, Floats b, Floats c) noexcept { return _mm256_fmadd_ps(a, b, c); }
    static Floats magnitude(Floats a) noexcept { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
    static float sum(Floats v) noexcept {
        __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        s = _mm_add_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
    }
    static float largest(Floats v) noexcept {
        __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
        s = _mm_max_ps(s, _mm_movehl_ps(s, s));
        return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
    }
    // Asks for the cache line at `p`, which need not be mapped.
    static void prefetch(const void* p) noexcept { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
    // The same into the second-level cache.
    // Assembly, because GCC removes the intrinsic from some loops.
    static void prefetch_far(const void* p) noexcept {
        asm volatile("prefetcht1 %0" : : "m"(*static_cast<const char*>(p)));
    }
    // 2^round(n) for n in [-126, 127].
    static Floats power_of_two(Floats n) noexcept {
        const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(e, 23));
    }
    static Floats round(Floats v) noexcept { return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
    // v where a >= b, else 0.
    static Floats where_not_less(Floats a, Floats b, Floats v) noexcept {
        return _mm256_and_ps(_mm256_cmp_ps(a, b, _CMP_GE_OQ), v);
    }
    // `hidden` in the lanes whose limit is less than token, else v.
    static Floats hide(Floats v, const int32_t* limits, int32_t token, Floats hidden) noexcept {
        const __m256i limit = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(limits));
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(token), limit);
        return _mm256_blendv_ps(v, hidden, _mm256_castsi256_ps(mask));
    }
    // Eight rows of kLanes columns to kLanes rows of eight.
    static void transpose(Floats* r) noexcept {
        __m256 t[8], u[8];
        for (int i = 0; i < 8; i += 2) {
            t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
            t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
        }
        for (int i = 0; i < 8; i += 4) {
            u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
            u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
            u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
            u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
        }
        for (int i = 0; i < 4; ++i) {
            r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
            r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
        }
    }
    // Lane i: the sum of the lanes of r[i].
    static Floats sums_of(const Floats (&r)[8]) noexcept {
        Floats four[2];  // in each half: a part of the sums of four vectors
        for (int i = 0; i < 2; ++i) {
            const Floats* v = r + 4 * i;
            const Floats a = add(_mm256_unpacklo_ps(v[0], v[1]), _mm256_unpackhi_ps(v[0], v[1]));
            const Floats b = add(_mm256_unpacklo_ps(v[2], v[3]), _mm256_unpackhi_ps(v[2], v[3]));
            four[i] = add(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
        }
        return add(_mm256_permute2f128_ps(four[0], four[1], 0x20), _mm256_permute2f128_ps(four[0], four[1], 0x31));
    }
    static void store_low_half(float* p, Floats v) noexcept { _mm_storeu_ps(p, _mm256_castps256_ps128(v)); }
    static void store_high_half(float* p, Floats v) noexcept { _mm_storeu_ps(p, _mm256_extractf128_ps(v, 1)); }

    // ---- Steps of dot products: sums[v] += lanes[v] * x, one operand of the cache against V vectors of lanes. Written
    // as assembly because GCC otherwise rotates the sums through more registers than there are. ----

    // x: the float at p.
    template <int V>
    static void accumulate(Floats (&sums)[V], const Floats (&lanes)[V], const float* p) noexcept {
        static_assert(V == 1 || V == 2);
        // Copies, because GCC keeps an array in memory if assembly names its elements.
        Floats s = sums[0], t = sums[V - 1], x;
        const Floats a = lanes[0], b = lanes[V - 1];
        if constexpr (V == 1) {
            asm("vbroadcastss %[p], %[x]\n\tvfmadd231ps %[a], %[x], %[s]"
                : [s] "+x"(s), [x] "=&x"(x)
                : [a] "x"(a), [p] "m"(*p));
        } else {
            asm("vbroadcastss %[p], %[x]\n\tvfmadd231ps %[a], %[x], %[s]\n\tvfmadd231ps %[b], %[x], %[t]"
                : [s] "+&x"(s), [t] "+x"(t), [x] "=&x"(x)
                : [a] "x"(a), [b] "x"(b), [p] "m"(*p));
        }
        if constexpr (V == 2) sums[1] = t;
        sums[0] = s;
    }
    // x: the two int16 at p; each lane adds the products with its own two.
    template <int V>
    static void accumulate(Ints (&sums)[V], const Ints (&lanes)[V], const int16_t* p) noexcept {
        static_assert(V == 1 || V == 2);
        const auto& pair = *reinterpret_cast<const int16_t(*)[2]>(p);
        Ints s = sums[0], t = sums[V - 1], x, y;
        const Ints a = lanes[0], b = lanes[V - 1];
        if constexpr (V == 1) {
            asm("vpbroadcastd %[p], %[x]\n\tvpmaddwd %[a], %[x], %[x]\n\tvpaddd %[x], %[s], %[s]"
                : [s] "+x"(s), [x] "=&x"(x)
                : [a] "x"(a), [p] "m"(pair));
        } else {
            asm("vpbroadcastd %[p], %[x]\n\tvpmaddwd %[a], %[x], %[y]\n\tvpmaddwd %[b], %[x], %[x]\n\t"
                "vpaddd %[y], %[s], %[s]\n\tvpaddd %[x], %[t], %[t]"
                : [s] "+&x"(s), [t] "+x"(t), [x] "=&x"(x), [y] "=&x"(y)
                : [a] "x"(a), [b] "x"(b), [p] "m"(pair));
        }
        if constexpr (V == 2) sums[1] = t;
        sums[0] = s;
    }

    static Ints load_ints(const int16_t* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
    static void store_ints(int16_t* p, Ints v) noexcept { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
    static Ints zero_ints() noexcept { return _mm256_setzero_si256(); }
    static Floats to_floats(Ints v) noexcept { return _mm256_cvtepi32_ps(v); }
    // Two numbers of [-32767, 32767], rounded, to the two int16 of each lane.
    static Ints pair(Floats first, Floats second) noexcept {
        return _mm256_blend_epi16(_mm256_cvtps_epi32(first), _mm256_slli_epi32(_mm256_cvtps_epi32(second), 16), 0xAA);
    }

    // ---- Rows of a cache as int16, in blocks of 32 elements. Inside a block the order is 0-7, 16-23, 8-15, 24-31:
    // what unpacking bytes gives. place_of says where an element goes. ----

    static constexpr int place_of(int element) noexcept {
        const int i = element % 32;
        return element - i + i / 8 % 2 * 16 + i / 16 * 8 + i % 8;
    }

    // 32 floats times `factor`, rounded; the products lie in [-32767, 32767].
    static void int16_from_floats(const float* x, float factor, int16_t* to) noexcept {
        const __m256 f = _mm256_set1_ps(factor);
        store_int16(_mm256_mul_ps(f, load(x)), _mm256_mul_ps(f, load(x + 8)), _mm256_mul_ps(f, load(x + 16)),
                    _mm256_mul_ps(f, load(x + 24)), to);
    }
    static void int16_from_f16(const uint16_t* x, float factor, int16_t* to) noexcept {
        const __m256 f = _mm256_set1_ps(factor);
        store_int16(_mm256_mul_ps(f, from_f16(x)), _mm256_mul_ps(f, from_f16(x + 8)),
                    _mm256_mul_ps(f, from_f16(x + 16)), _mm256_mul_ps(f, from_f16(x + 24)), to);
    }
    static void int16_from_bf16(const uint16_t* x, float factor, int16_t* to) noexcept {
        const __m256 f = _mm256_set1_ps(factor);
        store_int16(_mm256_mul_ps(f, from_bf16(x)), _mm256_mul_ps(f, from_bf16(x + 8)),
                    _mm256_mul_ps(f, from_bf16(x + 16)), _mm256_mul_ps(f, from_bf16(x + 24)), to);
    }
    // 32 bytes times ratio / 2^7.
    static void int16_from_bytes(const int8_t* x, int16_t ratio, int16_t* to) noexcept {
        const __m256i r = _mm256_set1_epi16(ratio);
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
        const __m256i zero = _mm256_setzero_si256();
        store_ints(to, _mm256_mulhrs_epi16(_mm256_unpacklo_epi8(zero, b), r));
        store_ints(to + 16, _mm256_mulhrs_epi16(_mm256_unpackhi_epi8(zero, b), r));
    }
    // Largest magnitude of `count` numbers, a multiple of 32; NaN if one of them is. So they are compared as integers.
    static float largest_of_f16(const uint16_t* x, int count) noexcept {
        return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(largest_uint16(x, count))));
    }
    static float largest_of_bf16(const uint16_t* x, int count) noexcept {
        return std::bit_cast<float>(static_cast<uint32_t>(largest_uint16(x, count)) << 16);
    }
    static float largest_of_floats(const float* x, int count) noexcept { return largest_magnitude(x, count); }
    // Floats in [-32768, 32767], rounded.
    static void to_int16(int16_t* p, Floats v) noexcept {
        const __m256i i = _mm256_cvtps_epi32(v);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packs_epi32(i, i), 0x08);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
    }
    // Two rows of 32 int16 to 32 pairs. pair_place_of says where the pair of a place goes.
    static void interleave(const int16_t* first, const int16_t* second, int16_t* pairs) noexcept {
        for (int i = 0; i < 32; i += 16) {
            const __m256i a = load_ints(first + i), b = load_ints(second + i);
            store_ints(pairs + 2 * i, _mm256_unpacklo_epi16(a, b));
            store_ints(pairs + 2 * i + 16, _mm256_unpackhi_epi16(a, b));
        }
    }
    static constexpr int pair_place_of(int place) noexcept {
        const int i = place % 16;
        return place - i + i / 4 % 2 * 8 + i / 8 * 4 + i % 4;
    }

    static Floats from_f16(const uint16_t* p) noexcept {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static float from_one_f16(uint16_t half) noexcept { return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(half))); }
    static Floats from_s8(const int8_t* p) noexcept {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    static Floats from_bf16(const uint16_t* p) noexcept {
        const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
    static void to_f16(uint16_t* p, Floats v) noexcept {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    // Round to nearest, ties to even; not-a-number becomes a quiet one.
    static void to_bf16(uint16_t* p, Floats v) noexcept {
        const __m256i bits = _mm256_castps_si256(v);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
        const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
        const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        const __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0x08);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
    }
    // 32 floats times `inverse`, rounded half away from zero, to bytes. The products lie in [-127, 127].
    static void to_bytes(int8_t* p, const float* x, float inverse) noexcept {
        __m256i q[4];
        for (int i = 0; i < 4; ++i) {
            const __m256 t = _mm256_mul_ps(load(x + 8 * i), splat(inverse));
            const __m256 whole = _mm256_round_ps(t, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
            const __m256 up = where_not_less(magnitude(_mm256_sub_ps(t, whole)), splat(0.5f), splat(1.0f));
            const __m256 sign = _mm256_and_ps(t, splat(-0.0f));
            q[i] = _mm256_cvttps_epi32(_mm256_add_ps(whole, _mm256_or_ps(up, sign)));
        }
        const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permutevar8x32_epi32(bytes, order));
    }

  private:
    static void store_int16(Floats a, Floats b, Floats c, Floats d, int16_t* to) noexcept {
        const __m256i even = _mm256_packs_epi32(_mm256_cvtps_epi32(a), _mm256_cvtps_epi32(c));
        const __m256i odd = _mm256_packs_epi32(_mm256_cvtps_epi32(b), _mm256_cvtps_epi32(d));
        store_ints(to, _mm256_permute4x64_epi64(even, 0xD8));
        store_ints(to + 16, _mm256_permute4x64_epi64(odd, 0xD8));
    }
    static int largest_uint16(const uint16_t* x, int count) noexcept {
        const __m256i mask = _mm256_set1_epi16(0x7FFF);
        __m256i m = _mm256_setzero_si256();
        for (int i = 0; i < count; i += 16) {
            const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i));
            m = _mm256_max_epu16(m, _mm256_and_si256(v, mask));
        }
        const __m128i all = _mm_set1_epi16(-1);
        const __m128i h = _mm_max_epu16(_mm256_castsi256_si128(m), _mm256_extracti128_si256(m, 1));
        return _mm_cvtsi128_si32(_mm_xor_si128(_mm_minpos_epu16(_mm_xor_si128(h, all)), all)) & 0xFFFF;
    }
};

// With AVX-VNNI besides.
struct Avx2VnniVectors : Avx2Vectors {
    using Avx2Vectors::accumulate;
    template <int V>
    static void accumulate(Ints (&sums)[V], const Ints (&lanes)[V], const int16_t* p) noexcept {
        avx_vnni::accumulate<V>(sums, lanes, p);
    }

    // ---- Bytes ----

    // Vectors of sums in a tile of values: with operands and a temporary they fit the registers.
    static constexpr int kByteSums = 8;
    // Adds the four signed bytes at p, each times a lane's unsigned one.
    template <int V>
    static void accumulate_bytes(Ints (&sums)[V], const Ints (&lanes)[V], const int8_t* p) noexcept {
        avx_vnni::accumulate_bytes<V>(sums, lanes, p);
    }
    // Adds the four unsigned bytes at p, each times a lane's signed one.
    static void accumulate_signed_bytes(Ints& sum, Ints lanes, const uint8_t* p) noexcept {
        avx_vnni::accumulate_signed_bytes(sum, lanes, p);
    }
    static Ints add_ints(Ints a, Ints b) noexcept { return _mm256_add_epi32(a, b); }
    static Ints subtract_ints(Ints a, Ints b) noexcept { return _mm256_sub_epi32(a, b); }
    static Ints broadcast_ints(const int32_t* p) noexcept { return _mm256_set1_epi32(*p); }
    static Ints load_sums(const int32_t* p) noexcept { return _mm256_loadu_si256(reinterpret_cast<const Ints*>(p)); }
    static void store_sums(int32_t* p, Ints v) noexcept { _mm256_storeu_si256(reinterpret_cast<Ints*>(p), v); }
    static Ints load_bytes(const void* p) noexcept { return _mm256_loadu_si256(static_cast<const Ints*>(p)); }
    static void store_bytes(void* p, Ints v) noexcept { _mm256_storeu_si256(static_cast<Ints*>(p), v); }
    // From signed bytes of four elements, each of tokens 0 2 1 3, to those of tokens 0 1 2 3, each of four elements,
    // with 128 added: in every 16 bytes, columns of 4 x 4 become rows.
    static Ints keys_of_values(Ints v) noexcept {
        const __m128i columns = _mm_setr_epi8(0, 4, 8, 12, 2, 6, 10, 14, 1, 5, 9, 13, 3, 7, 11, 15);
        return _mm256_shuffle_epi8(_mm256_xor_si256(v, _mm256_set1_epi8(-128)), _mm256_broadcastsi128_si256(columns));
    }
    // Times 256.
    static Ints shift_bytes(Ints high) noexcept { return _mm256_slli_epi32(high, 8); }
    // Pairs of int16 in each lane; products are divided by 2^15 and rounded.
    static Ints add_pairs(Ints a, Ints b) noexcept { return _mm256_add_epi16(a, b); }
    static Ints multiply_pairs(Ints a, Ints b) noexcept { return _mm256_mulhrs_epi16(a, b); }
    // Of the pairs a0, a1 of a lane of a and b0, b1 of b: the lower, or the upper, bytes of a0, b0, a1, b1.
    static Ints low_bytes(Ints a, Ints b) noexcept {
        return _mm256_blendv_epi8(a, _mm256_slli_epi32(b, 8), _mm256_set1_epi16(-256));
    }
    static Ints high_bytes(Ints a, Ints b) noexcept {
        return _mm256_blendv_epi8(_mm256_srli_epi32(a, 8), b, _mm256_set1_epi16(-256));
    }
    // v where x is zero, and zeros elsewhere.
    static Ints where_zero(Floats x, Ints v) noexcept {
        return _mm256_and_si256(_mm256_castps_si256(_mm256_cmp_ps(x, zero(), _CMP_EQ_OQ)), v);
    }
    static bool any_zero(Floats x) noexcept { return _mm256_movemask_ps(_mm256_cmp_ps(x, zero(), _CMP_EQ_OQ)) != 0; }
};

}  // namespace tessera::cpu::isa
