// Attention of 16 heads over latent rows with 16-bit integers: cache rows become int16 with one scale for each part of
// a row (value prefix, rest), so block scales of the cache cost nothing beyond that conversion.
//
// vpmaddwd does as many products a cycle as vpmaddubsw followed by vpmaddwd with ones, needs no sign trick, and leaves
// room for 13 bits of cache, up to 16 of query and 12 of weights.
#pragma once

#include "attention_data.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace tessera::bets {

// exp(x) for x <= 0, relative error about 2e-7: 2^n * p(f), p the Taylor polynomial of 2^f on [-0.5, 0.5].
inline __m256 exp_of_negative(__m256 x) {
    x = _mm256_max_ps(x, _mm256_set1_ps(-87.0f));
    const __m256 t = _mm256_mul_ps(x, _mm256_set1_ps(1.44269504f));
    const __m256 n = _mm256_round_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 f = _mm256_sub_ps(t, n);
    __m256 p = _mm256_set1_ps(1.5403530e-4f);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.3333558e-3f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(9.6181291e-3f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(5.5504109e-2f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(2.4022651e-1f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(6.9314718e-1f));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0f));
    const __m256i e = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), e));
}

// Order of elements inside 32 after unpacking bytes to words in lanes; queries and outputs follow it.
inline int unpacked_position(int i) {  // element -> position
    const int lane = i / 16, half = i / 8 % 2;
    return half * 16 + lane * 8 + i % 8;
}

class Int16Attention {
  public:
    static constexpr int kTile = 64;
    static constexpr int kMaxKey = 8128;  // 127 * 64
    static constexpr int kMaxWeight = 4095;

    struct Scratch {
        alignas(64) std::int16_t key[kTile * kKeyDim];
        alignas(64) std::int16_t value[kTile * kValueDim];  // [pair of tokens][dim][2]
        alignas(64) float scores[kTile * kHeads];           // [token][head]
        alignas(64) std::int16_t weights[kTile * kHeads];   // [pair of tokens][head][2]
        alignas(64) float out[kValueDim * kHeads];          // [dim][head]
        alignas(64) float top[kHeads];
        alignas(64) float sum[kHeads];
        float row_scale[2][kTile];
    };

    Int16Attention(const Problem& problem) : query_(kHeads * kKeyDim) {
        for (int h = 0; h < kHeads; ++h) {
            for (int part = 0; part < 2; ++part) {
                const int begin = part ? kValueDim : 0, end = part ? kKeyDim : kValueDim;
                double sum = 0, top = 0;
                for (int d = begin; d < end; ++d) {
                    const double q = std::abs(problem.query[std::size_t(h) * kKeyDim + d]);
                    sum += q;
                    top = std::max(top, q);
                }
                // No sum of products can pass 2^31, whatever the cache holds.
                const double factor = std::min(262000.0 / sum, 32000.0 / top);
                query_scale_[part][h] = float(problem.scale / factor);
                for (int d = begin; d < end; ++d) {
                    const int place = d / 32 * 32 + unpacked_position(d % 32);
                    query_[(std::size_t(place / 2) * kHeads + h) * 2 + place % 2] =
                        std::int16_t(std::lrint(problem.query[std::size_t(h) * kKeyDim + d] * factor));
                }
            }
        }
    }

    static void begin(Scratch& s) {
        std::fill(std::begin(s.out), std::end(s.out), 0.0f);
        std::fill(std::begin(s.top), std::end(s.top), -1e30f);
        std::fill(std::begin(s.sum), std::end(s.sum), 0.0f);
    }

    // quants [kTile][576] int8, scales [kTile][18] of blocks (BlockScales) or [kTile][1].
    template <bool BlockScales>
    static void load_tile(Scratch& s, const std::int8_t* quants, const float* scales) {
        const __m256i zero = _mm256_setzero_si256();
        for (int t = 0; t < kTile; ++t) {
            const std::int8_t* q = quants + std::size_t(t) * kKeyDim;
            std::int16_t* k = s.key + std::size_t(t) * kKeyDim;
            if constexpr (BlockScales) {
                // ratios[b]: 2^13 times the block's scale over the largest of its part
                alignas(32) std::int16_t ratios[24];
                const float* d = scales + std::size_t(t) * kBlocks;
                const __m256 d0 = _mm256_loadu_ps(d), d1 = _mm256_loadu_ps(d + 8);
                const __m256 wide = _mm256_max_ps(d0, d1);
                __m128 m = _mm_max_ps(_mm256_castps256_ps128(wide), _mm256_extractf128_ps(wide, 1));
                m = _mm_max_ps(m, _mm_movehl_ps(m, m));
                const float top = std::max(_mm_cvtss_f32(m), _mm_cvtss_f32(_mm_movehdup_ps(m)));
                const float inverse = top > 0 ? 8192.0f / top : 0.0f;
                const __m256i r0 = _mm256_cvtps_epi32(_mm256_mul_ps(d0, _mm256_set1_ps(inverse)));
                const __m256i r1 = _mm256_cvtps_epi32(_mm256_mul_ps(d1, _mm256_set1_ps(inverse)));
                _mm256_store_si256(reinterpret_cast<__m256i*>(ratios),
                                   _mm256_permute4x64_epi64(_mm256_packs_epi32(r0, r1), 0xd8));
                const float top1 = std::max(d[16], d[17]), inverse1 = top1 > 0 ? 8192.0f / top1 : 0.0f;
                ratios[16] = std::int16_t(_mm_cvtss_si32(_mm_set_ss(d[16] * inverse1)));
                ratios[17] = std::int16_t(_mm_cvtss_si32(_mm_set_ss(d[17] * inverse1)));
                s.row_scale[0][t] = top / 64;
                s.row_scale[1][t] = top1 / 64;
                for (int b = 0; b < kBlocks; ++b) {
                    const __m256i ratio = _mm256_set1_epi16(ratios[b]);
                    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + b * 32));
                    // (byte << 8) * ratio / 2^15: at most 127 * 64
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + b * 32),
                                       _mm256_mulhrs_epi16(_mm256_unpacklo_epi8(zero, x), ratio));
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + b * 32 + 16),
                                       _mm256_mulhrs_epi16(_mm256_unpackhi_epi8(zero, x), ratio));
                }
            } else {
                s.row_scale[0][t] = s.row_scale[1][t] = scales[t];
                for (int b = 0; b < kBlocks; ++b) {
                    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + b * 32));
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + b * 32),
                                       _mm256_srai_epi16(_mm256_unpacklo_epi8(zero, x), 8));
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + b * 32 + 16),
                                       _mm256_srai_epi16(_mm256_unpackhi_epi8(zero, x), 8));
                }
            }
            if (t % 2) pair_values(s, t);
        }
    }

    // rows f16 [kTile][576].
    static void load_tile(Scratch& s, const std::uint16_t* rows) {
        for (int t = 0; t < kTile; ++t) {
            const std::uint16_t* x = rows + std::size_t(t) * kKeyDim;
            std::int16_t* k = s.key + std::size_t(t) * kKeyDim;
            for (int part = 0; part < 2; ++part) {
                const int begin = part ? kValueDim : 0, end = part ? kKeyDim : kValueDim;
                // Magnitudes of f16 compare as integers.
                __m256i top = _mm256_setzero_si256();
                for (int d = begin; d < end; d += 16)
                    top = _mm256_max_epu16(top,
                                           _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + d)),
                                                            _mm256_set1_epi16(0x7fff)));
                __m128i m = _mm_max_epu16(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
                m = _mm_minpos_epu16(_mm_xor_si128(m, _mm_set1_epi16(-1)));
                const float largest = _mm_cvtss_f32(_mm_cvtph_ps(_mm_xor_si128(m, _mm_set1_epi16(-1))));
                const float factor = largest > 0 ? kMaxKey / largest : 0.0f;
                s.row_scale[part][t] = largest / kMaxKey;
                const __m256 f = _mm256_set1_ps(factor);
                for (int d = begin; d < end; d += 32) {
                    __m256i i[4];
                    for (int j = 0; j < 4; ++j)
                        i[j] = _mm256_cvtps_epi32(_mm256_mul_ps(
                            f, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + d + 8 * j)))));
                    // the order that unpacking bytes gives: 0-7 and 16-23, 8-15 and 24-31
                    const __m256i a = _mm256_packs_epi32(i[0], i[2]), b = _mm256_packs_epi32(i[1], i[3]);
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + d), _mm256_permute4x64_epi64(a, 0xd8));
                    _mm256_store_si256(reinterpret_cast<__m256i*>(k + d + 16), _mm256_permute4x64_epi64(b, 0xd8));
                }
            }
            if (t % 2) pair_values(s, t);
        }
    }

    // Tokens t - 1 and t.
    static void pair_values(Scratch& s, int t) {
        const std::int16_t* k = s.key + std::size_t(t) * kKeyDim;
        const std::int16_t* other = k - kKeyDim;
        std::int16_t* v = s.value + std::size_t(t / 2) * kValueDim * 2;
        for (int d = 0; d < kValueDim; d += 16) {
            const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(other + d));
            const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(k + d));
            _mm256_store_si256(reinterpret_cast<__m256i*>(v + d * 2), _mm256_unpacklo_epi16(a, b));
            _mm256_store_si256(reinterpret_cast<__m256i*>(v + d * 2 + 16), _mm256_unpackhi_epi16(a, b));
        }
    }

    // Where dim d of the output lies in Scratch::out.
    static int out_position(int d) {
        const int place = d / 32 * 32 + unpacked_position(d % 32);
        // unpacking two rows to pairs: within 16, the halves of each 8 go to the low and the high vector
        const int i = place % 16, lane = i / 8, half = i / 4 % 2;
        return place / 16 * 16 + half * 8 + lane * 4 + i % 4;
    }

    void tile(Scratch& s) const {
        int t = 0;
        for (; t + 6 <= kTile; t += 6) {
            scores<6, 0>(s, t);
            scores<6, 1>(s, t);
        }
        for (; t < kTile; t += 4) {
            scores<4, 0>(s, t);
            scores<4, 1>(s, t);
        }
        __m256 correction[2], weight_scale[2];
        for (int g = 0; g < 2; ++g) softmax(s, g, correction[g], weight_scale[g]);
        int d = 0;
        for (; d + 6 <= kValueDim; d += 6) weighted<6>(s, d, correction, weight_scale);
        for (; d < kValueDim; d += 2) weighted<2>(s, d, correction, weight_scale);
    }

  private:
    // Elements 0 .. 511 (Part 0) or 512 .. 575 (Part 1, added to what is there) of N rows.
    template <int N, int Part>
    void scores(Scratch& s, int first) const {
        constexpr int kBegin = Part ? kValueDim : 0, kEnd = Part ? kKeyDim : kValueDim;
        const std::int16_t* k = s.key + std::size_t(first) * kKeyDim;
        __m256i acc[N][2];
        for (int i = 0; i < N; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
        const std::int16_t* q = query_.data() + std::size_t(kBegin) * kHeads;
        for (int p = kBegin; p < kEnd; p += 2, q += 2 * kHeads) {
            const __m256i q0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(q));
            const __m256i q1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(q + 16));
#pragma GCC unroll 8
            for (int i = 0; i < N; ++i) {
                int pair;
                std::memcpy(&pair, k + std::size_t(i) * kKeyDim + p, 4);
                add_products(acc[i], _mm256_set1_epi32(pair), q0, q1);
            }
        }
        for (int i = 0; i < N; ++i)
            for (int g = 0; g < 2; ++g) {
                float* to = s.scores + std::size_t(first + i) * kHeads + 8 * g;
                const __m256 f =
                    _mm256_mul_ps(_mm256_cvtepi32_ps(acc[i][g]), _mm256_load_ps(query_scale_[Part] + 8 * g));
                const __m256 r = _mm256_set1_ps(s.row_scale[Part][first + i]);
                _mm256_store_ps(to, Part ? _mm256_fmadd_ps(f, r, _mm256_load_ps(to)) : _mm256_mul_ps(f, r));
            }
    }

    static void add_products(__m256i* acc, __m256i x, __m256i a, __m256i b) {
        acc[0] = _mm256_add_epi32(acc[0], _mm256_madd_epi16(x, a));
        acc[1] = _mm256_add_epi32(acc[1], _mm256_madd_epi16(x, b));
        // Keeps each sum in its register: GCC otherwise rotates and spills them.
        asm("" : "+x"(acc[0]), "+x"(acc[1]));
    }

    // Heads 8 g .. 8 g + 7. correction: what earlier sums are multiplied by; weight_scale: of one step of a weight.
    static void softmax(Scratch& s, int g, __m256& correction, __m256& weight_scale) {
        float* x = s.scores + 8 * g;
        __m256 top = _mm256_load_ps(s.top + 8 * g);
        const __m256 before = top;
        for (int t = 0; t < kTile; ++t) top = _mm256_max_ps(top, _mm256_load_ps(x + t * kHeads));
        correction = exp_of_negative(_mm256_sub_ps(before, top));
        _mm256_store_ps(s.top + 8 * g, top);
        __m256 sum = _mm256_setzero_ps(), largest = _mm256_set1_ps(1e-30f);
        for (int t = 0; t < kTile; ++t) {
            const __m256 e = exp_of_negative(_mm256_sub_ps(_mm256_load_ps(x + t * kHeads), top));
            sum = _mm256_add_ps(sum, e);
            const __m256 w = _mm256_mul_ps(e, _mm256_set1_ps(s.row_scale[0][t]));
            largest = _mm256_max_ps(largest, w);
            _mm256_store_ps(x + t * kHeads, w);
        }
        float* total = s.sum + 8 * g;
        _mm256_store_ps(total, _mm256_fmadd_ps(_mm256_load_ps(total), correction, sum));
        const __m256 factor = _mm256_div_ps(_mm256_set1_ps(kMaxWeight), largest);
        weight_scale = _mm256_mul_ps(largest, _mm256_set1_ps(1.0f / kMaxWeight));
        for (int t = 0; t < kTile; t += 2) {
            const __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x + t * kHeads), factor));
            const __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_load_ps(x + (t + 1) * kHeads), factor));
            const __m256i both = _mm256_or_si256(a, _mm256_slli_epi32(b, 16));
            _mm256_store_si256(reinterpret_cast<__m256i*>(s.weights + std::size_t(t / 2) * kHeads * 2 + 16 * g), both);
        }
    }

    template <int N>
    static void weighted(Scratch& s, int first, const __m256* correction, const __m256* weight_scale) {
        __m256i acc[N][2];
        for (int i = 0; i < N; ++i) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
        const std::int16_t* v = s.value + first * 2;
        const std::int16_t* w = s.weights;
        for (int p = 0; p < kTile / 2; ++p, v += kValueDim * 2, w += kHeads * 2) {
            const __m256i w0 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w));
            const __m256i w1 = _mm256_load_si256(reinterpret_cast<const __m256i*>(w + 16));
#pragma GCC unroll 8
            for (int i = 0; i < N; ++i) {
                int pair;
                std::memcpy(&pair, v + i * 2, 4);
                add_products(acc[i], _mm256_set1_epi32(pair), w0, w1);
            }
        }
        for (int i = 0; i < N; ++i)
            for (int g = 0; g < 2; ++g) {
                float* o = s.out + std::size_t(first + i) * kHeads + 8 * g;
                _mm256_store_ps(o, _mm256_fmadd_ps(_mm256_cvtepi32_ps(acc[i][g]), weight_scale[g],
                                                   _mm256_mul_ps(_mm256_load_ps(o), correction[g])));
            }
    }

    Aligned<std::int16_t> query_;  // [pair of elements][head][2]
    alignas(64) float query_scale_[2][kHeads];
};

}  // namespace tessera::bets
