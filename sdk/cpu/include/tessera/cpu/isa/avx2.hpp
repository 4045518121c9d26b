// The ISA policy of AVX2 with FMA and F16C: what the kernel algorithms of this kit need of a vector unit, by name.
//
// A vector holds one 32-bit lane for each of kLanes neighbouring rows of a weight matrix; a lane holds four bytes of
// codes (four neighbouring columns), or one integer or float result. The including file brings the compiler flags.
#pragma once

#include <tessera/cpu/isa/magnitudes.hpp>

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa {

struct Avx2 {
    using Rows = Avx2;  // reads groups of packed rows as they lie
    static constexpr int kLanes = 8;
    static constexpr int kGroupLanes = 8;   // of a group of packed rows, whatever a vector holds
    static constexpr int kPanelGroups = 2;  // of a panel: with four rows eight sums, of 16 registers

    using Bytes = __m256i;  // 4 codes a lane
    using Ints = __m256i;   // one 32-bit integer a lane
    using Floats = __m256;  // one float a lane
    using Sums = __m256i;   // running dot products: two wrapping 16-bit sums a lane
    static constexpr bool kShortSums = true;

    static Bytes load(const void* p) noexcept { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
    static void store(void* p, Bytes v) noexcept { _mm256_storeu_si256(static_cast<__m256i*>(p), v); }
    // The same four bytes in every lane.
    static Bytes broadcast4(const void* p) noexcept {
        return _mm256_castps_si256(_mm256_broadcast_ss(static_cast<const float*>(p)));
    }
    static Bytes splat(uint8_t v) noexcept { return _mm256_set1_epi8(static_cast<char>(v)); }

    // Bits of bytes. Shifts move inside 16 bits; the mask drops what came from the neighbour.
    template <int kShift>
    static Bytes shifted_right(Bytes v, uint8_t mask) noexcept {
        if constexpr (kShift == 0)
            return _mm256_and_si256(v, splat(mask));
        else
            return _mm256_and_si256(_mm256_srli_epi16(v, kShift), splat(mask));
    }
    template <int kShift>
    static Bytes shifted_left(Bytes v, uint8_t mask) noexcept {
        if constexpr (kShift == 0)
            return _mm256_and_si256(v, splat(mask));
        else
            return _mm256_and_si256(_mm256_slli_epi16(v, kShift), splat(mask));
    }
    static Bytes either(Bytes a, Bytes b) noexcept { return _mm256_or_si256(a, b); }
    // table[codes], codes 0..15; the table of 16 bytes.
    static Bytes lookup16(const int8_t* table, Bytes codes) noexcept {
        const __m256i wide = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
        return _mm256_shuffle_epi8(wide, codes);
    }

    // table[codes], codes 0..31 and 0..63.
    static Bytes lookup32(const int8_t* table, Bytes codes) noexcept {
        return chosen(lookup16(table, codes), lookup16(table + 16, codes), _mm256_slli_epi16(codes, 3));
    }
    static Bytes lookup64(const int8_t* table, Bytes codes) noexcept {
        return chosen(lookup32(table, codes), lookup32(table + 32, codes), _mm256_slli_epi16(codes, 2));
    }
    static Bytes add_bytes(Bytes a, Bytes b) noexcept { return _mm256_add_epi8(a, b); }
    static Bytes subtract_bytes(Bytes a, Bytes b) noexcept { return _mm256_sub_epi8(a, b); }
    // Magnitudes above 0, negated where bit kBit of a byte is set.
    template <int kBit>
    static Bytes with_signs(Bytes magnitudes, Bytes bits) noexcept {
        const __m256i top = kBit == 7 ? bits : _mm256_slli_epi16(bits, 7 - kBit);
        return _mm256_sign_epi8(magnitudes, _mm256_or_si256(top, splat(uint8_t{1})));
    }
    // Four bytes a lane: entry indices[lane] of a table of 32-bit entries. Loads one by one: on Zen 3 twice as fast as
    // a gather.
    static Bytes gather4(const uint32_t* table, const uint8_t* indices) noexcept {
        const auto four = [&](const uint8_t* at) {
            __m128i v = _mm_cvtsi32_si128(static_cast<int>(table[at[0]]));
            v = _mm_insert_epi32(v, static_cast<int>(table[at[1]]), 1);
            v = _mm_insert_epi32(v, static_cast<int>(table[at[2]]), 2);
            return _mm_insert_epi32(v, static_cast<int>(table[at[3]]), 3);
        };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(four(indices)), four(indices + 4), 1);
    }
    static Bytes gather4(const uint32_t* table, Ints indices) noexcept {
        const auto two = [&](int64_t pair) {
            const auto both = static_cast<uint64_t>(pair);
            const __m128i v = _mm_cvtsi32_si128(static_cast<int>(table[both & 0xFFFFFFFF]));
            return _mm_insert_epi32(v, static_cast<int>(table[both >> 32]), 1);
        };
        const auto four = [&](__m128i at) {
            return _mm_unpacklo_epi64(two(_mm_cvtsi128_si64(at)), two(_mm_extract_epi64(at, 1)));
        };
        return _mm256_inserti128_si256(_mm256_castsi128_si256(four(_mm256_castsi256_si128(indices))),
                                       four(_mm256_extracti128_si256(indices, 1)), 1);
    }

    // Bits of 32-bit lanes.
    static Ints widen_u8(const uint8_t* p) noexcept {
        return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    }
    static Ints widen_u16(const uint16_t* p) noexcept {
        return _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    template <int kShift>
    static Ints lanes_shifted_right(Ints v) noexcept {
        return kShift == 0 ? v : _mm256_srli_epi32(v, kShift);
    }
    template <int kShift>
    static Ints lanes_shifted_left(Ints v) noexcept {
        return kShift == 0 ? v : _mm256_slli_epi32(v, kShift);
    }
    static Ints masked(Ints v, uint32_t mask) noexcept {
        return _mm256_and_si256(v, _mm256_set1_epi32(static_cast<int>(mask)));
    }
    static Ints differing(Ints a, Ints b) noexcept { return _mm256_xor_si256(a, b); }
    template <int kShift, int kBits>
    static Ints bits_of_lane(Ints v) noexcept {
        return masked(lanes_shifted_right<kShift>(v), (1u << kBits) - 1);
    }
    template <int kShift, int kBits>
    static Floats bits_of_lane_as_floats(Ints v) noexcept {
        return _mm256_cvtepi32_ps(bits_of_lane<kShift, kBits>(v));
    }
    // `value` in the bytes of lanes whose bit kBit is set, else 0.
    template <int kBit>
    static Bytes where_bit(Ints lanes, int value) noexcept {
        return _mm256_and_si256(_mm256_srai_epi32(_mm256_slli_epi32(lanes, 31 - kBit), 31),
                                splat(static_cast<uint8_t>(value)));
    }
    // v, negated in lanes whose bit kBit is set.
    template <int kBit>
    static Ints negated_where(Ints v, Ints lanes) noexcept {
        return _mm256_sign_epi32(v, _mm256_or_si256(_mm256_slli_epi32(lanes, 31 - kBit), _mm256_set1_epi32(1)));
    }
    static Ints multiply_lanes(Ints v, uint32_t number) noexcept {
        return _mm256_mullo_epi32(v, _mm256_set1_epi32(static_cast<int>(number)));
    }
    // Byte i of a lane: the sum of the four bytes, below 64, of the lane of operand i.
    static Bytes sums_of_bytes(Bytes a, Bytes b, Bytes c, Bytes d) noexcept {
        // Pairs of bytes, two operands beside each other in 16 bits, then the two pairs of a lane.
        const auto two = [](Bytes even, Bytes odd) {
            const __m256i ones = _mm256_set1_epi8(1);
            return _mm256_or_si256(_mm256_maddubs_epi16(even, ones),
                                   _mm256_slli_epi16(_mm256_maddubs_epi16(odd, ones), 8));
        };
        const __m256i ab = two(a, b), cd = two(c, d);
        return _mm256_add_epi8(_mm256_blend_epi16(ab, _mm256_slli_epi32(cd, 16), 0xAA),
                               _mm256_blend_epi16(_mm256_srli_epi32(ab, 16), cd, 0xAA));
    }
    static Bytes magnitudes(Bytes v) noexcept { return _mm256_abs_epi8(v); }
    // -1 in bytes of `a` that are greater than those of `b`, signed; else 0.
    static Bytes where_greater(Bytes a, Bytes b) noexcept { return _mm256_cmpgt_epi8(a, b); }
    // Modulo 256, byte i times byte i of `factors`, of which neighbours are equal in pairs of bytes.
    static Bytes multiplied_bytes(Bytes v, Bytes factors) noexcept {
        const __m256i ones = _mm256_set1_epi16(255), factor = _mm256_and_si256(factors, ones);
        const __m256i even = _mm256_and_si256(_mm256_mullo_epi16(v, factor), ones);
        return _mm256_or_si256(even, _mm256_mullo_epi16(_mm256_andnot_si256(ones, v), factor));
    }
    // Four bytes repeated in the low half of a vector, the next four in the high one.
    static Bytes repeated_halves(const void* eight_bytes) noexcept {
        int64_t both;
        std::memcpy(&both, eight_bytes, sizeof both);
        return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(both), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    }
    // Byte e of lane l of vector k of each half: byte 4 k + l of that half of operand e.
    static void interleave_four(const Bytes (&from)[4], Bytes (&to)[4]) noexcept {
        const __m256i low01 = _mm256_unpacklo_epi8(from[0], from[1]), low23 = _mm256_unpacklo_epi8(from[2], from[3]);
        const __m256i high01 = _mm256_unpackhi_epi8(from[0], from[1]), high23 = _mm256_unpackhi_epi8(from[2], from[3]);
        to[0] = _mm256_unpacklo_epi16(low01, low23);
        to[1] = _mm256_unpackhi_epi16(low01, low23);
        to[2] = _mm256_unpacklo_epi16(high01, high23);
        to[3] = _mm256_unpackhi_epi16(high01, high23);
    }
    // Of each lane's four codes (0..31) the first two to `low`, the others to `high`: first[code], second[code] of
    // each.
    static void lookup32_pairs(const int8_t* first, const int8_t* second, Bytes codes, Bytes& low,
                               Bytes& high) noexcept {
        // A shuffle gives nought for an index whose top bit is set.
        const __m256i below = _mm256_add_epi8(codes, splat(uint8_t{0x70}));
        const __m256i above = _mm256_sub_epi8(codes, splat(uint8_t{16}));
        const auto level = [&](const int8_t* table) {
            return _mm256_or_si256(lookup16(table, below), lookup16(table + 16, above));
        };
        const __m256i a = level(first), b = level(second);
        // Each half of a vector: the eight bytes of a row side by side, two rows a vector.
        const __m256 rows01 = _mm256_castsi256_ps(_mm256_unpacklo_epi8(a, b));
        const __m256 rows23 = _mm256_castsi256_ps(_mm256_unpackhi_epi8(a, b));
        low = _mm256_castps_si256(_mm256_shuffle_ps(rows01, rows23, 0x88));
        high = _mm256_castps_si256(_mm256_shuffle_ps(rows01, rows23, 0xDD));
    }
    static Ints plus(Ints v, int number) noexcept { return _mm256_add_epi32(v, _mm256_set1_epi32(number)); }
    static Ints add_lanes(Ints a, Ints b) noexcept { return _mm256_add_epi32(a, b); }
    // Numbers of 16 bits as both int16 of their lanes.
    static Ints both_halves(Ints v) noexcept { return _mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xAA); }
    static Ints both_halves(int16_t number) noexcept { return _mm256_set1_epi16(number); }

    // Dot products of unsigned codes with signed ones, summed in wrapping 16 bits. Right as long as two products fit
    // (|u0 s0 + u1 s1| <= 32767) and the final sum of each half lane does; what lies between may wrap. `start` is where
    // a sum begins: two int16, for the even and the odd pair of a lane.
    static Sums start(const int16_t* pair) noexcept { return broadcast4(pair); }
    static Sums dot(Sums sums, Bytes unsigned_codes, Bytes signed_codes) noexcept {
        return in_order(_mm256_add_epi16(sums, _mm256_maddubs_epi16(unsigned_codes, signed_codes)));
    }
    static Ints total(Sums sums) noexcept { return scaled_total(sums, _mm256_set1_epi16(1)); }
    // Times a number that is both int16 of a lane.
    static Ints scaled_total(Sums sums, Ints scale) noexcept { return _mm256_madd_epi16(sums, scale); }

    // Dot products of two signed codes, summed in 32 bits. `b` is never -128. `start_signed` is where a sum begins,
    // from what `start` takes: others than this policy need it.
    static Ints start_signed(const int16_t*) noexcept { return zero(); }
    static Ints zero() noexcept { return _mm256_setzero_si256(); }
    static Ints dot_signed(Ints sums, Bytes a, Bytes b) noexcept {
        return dot_signed_scaled(sums, a, b, _mm256_set1_epi16(1));
    }
    // The products times a number that is both int16 of a lane.
    static Ints dot_signed_scaled(Ints sums, Bytes a, Bytes b, Ints scale) noexcept {
        const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
        return in_order(_mm256_add_epi32(sums, _mm256_madd_epi16(pairs, scale)));
    }

    static Floats to_floats(Ints v) noexcept { return _mm256_cvtepi32_ps(v); }
    static Floats load_floats(const float* p) noexcept { return _mm256_loadu_ps(p); }
    static void store_floats(float* p, Floats v) noexcept { _mm256_storeu_ps(p, v); }
    static Floats broadcast(const float* p) noexcept { return _mm256_broadcast_ss(p); }
    static Floats splat(float v) noexcept { return _mm256_set1_ps(v); }
    static Floats zero_floats() noexcept { return _mm256_setzero_ps(); }
    static Floats multiply(Floats a, Floats b) noexcept { return _mm256_mul_ps(a, b); }
    static Floats add(Floats a, Floats b) noexcept { return _mm256_add_ps(a, b); }
    static Floats subtract(Floats a, Floats b) noexcept { return _mm256_sub_ps(a, b); }
    static Floats fma(Floats a, Floats b, Floats c) noexcept { return _mm256_fmadd_ps(a, b, c); }

    // kLanes neighbouring numbers of other types as floats.
    static Floats from_f16(const uint16_t* p) noexcept {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Floats from_bf16(const uint16_t* p) noexcept {
        const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
    }
    static Floats from_u8(const uint8_t* p) noexcept {
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
    }
    // Eight bytes of a uint64, the first in its low bits.
    static Floats from_u8(uint64_t bytes) noexcept {
        return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(bytes))));
    }
    // kBits bits of each of kLanes bytes, from bit kShift on; as integers, and as floats.
    template <int kShift, int kBits>
    static Ints bits_of_u8(const uint8_t* p) noexcept {
        const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
        const __m256i shifted = kShift == 0 ? v : _mm256_srli_epi32(v, kShift);
        return kShift + kBits == 8 ? shifted : _mm256_and_si256(shifted, _mm256_set1_epi32((1 << kBits) - 1));
    }
    template <int kShift, int kBits>
    static Floats floats_of_u8(const uint8_t* p) noexcept {
        return _mm256_cvtepi32_ps(bits_of_u8<kShift, kBits>(p));
    }
    // low + 16 * high.
    static Ints nibble_above(Ints high, Ints low) noexcept { return _mm256_or_si256(low, _mm256_slli_epi32(high, 4)); }
    // Six bits a lane: four from a byte, two above them from a 16-bit number, each shifted down first.
    static Floats or_shifted(const uint8_t* low, int low_shift, const uint16_t* high, int high_shift) noexcept {
        __m256i four = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)));
        __m256i two = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(high)));
        four = _mm256_and_si256(_mm256_srl_epi32(four, _mm_cvtsi32_si128(low_shift)), _mm256_set1_epi32(15));
        two = _mm256_and_si256(_mm256_srl_epi32(two, _mm_cvtsi32_si128(high_shift)), _mm256_set1_epi32(3));
        return _mm256_cvtepi32_ps(_mm256_or_si256(four, _mm256_slli_epi32(two, 4)));
    }
    // The low 16 bits of each lane, an f16.
    static Floats from_f16_lanes(Ints bits) noexcept {
        const __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
        return _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    }
    // 2^(e - 128), as half_e8m0_to_f32.
    static Floats from_half_e8m0(const uint8_t* p) noexcept {
        const __m256i e = widen_u8(p);
        const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(e, _mm256_set1_epi32(1)), 23);
        const __m256i small = _mm256_sllv_epi32(_mm256_set1_epi32(0x00200000), e);
        const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(2), e);
        return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, small, is_small));
    }
    // Half of an e4m3 number, as nvfp4_scale.
    static Floats from_half_e4m3(const uint8_t* p) noexcept {
        const __m256i e4m3 = widen_u8(p), bits = masked(e4m3, 127);
        const __m256i normal = _mm256_slli_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(119 << 3)), 20);
        const __m256 small = _mm256_mul_ps(_mm256_cvtepi32_ps(bits), _mm256_set1_ps(0x1p-10f));
        const __m256i is_small = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), bits);
        const __m256i is_nan = _mm256_cmpeq_epi32(e4m3, _mm256_set1_epi32(127));
        const __m256i value = _mm256_blendv_epi8(normal, _mm256_castps_si256(small), is_small);
        return _mm256_castsi256_ps(_mm256_andnot_si256(is_nan, value));
    }
    static Ints widen_s8(const int8_t* p) noexcept {
        return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    }

    // Rows of kRowBytes, of each kGrain bytes in turn: to[i][row] = from[row][i].
    template <size_t kGrain, size_t kRowBytes>
    static void interleave(const unsigned char* const (&from)[kLanes], unsigned char* to) noexcept {
        size_t done = 0;
        if constexpr (kGrain == 4) {
            for (; done + 16 <= kRowBytes; done += 16) interleave_int32(from, done, to + done * kLanes);
        } else if constexpr (kGrain == 2) {
            for (; done + 16 <= kRowBytes; done += 16) interleave_int16(from, done, to + done * kLanes);
        } else if constexpr (kGrain == 1) {
            for (; done + 8 <= kRowBytes; done += 8) interleave_bytes(from, done, to + done * kLanes);
        }
        for (; done < kRowBytes; done += kGrain) {
            for (int row = 0; row < kLanes; ++row)
                std::memcpy(to + done * kLanes + static_cast<size_t>(row) * kGrain, from[row] + done, kGrain);
        }
    }

    // Asks for the cache line at `p`, which need not be mapped.
    // For weights, which arrive by whole groups: into the second cache, which has more reads under way than the first
    // one. A core that waits 150 ns for a line reads 6.6 GB/s past the second cache and 15 GB/s into it.
    static void prefetch(const void* p) noexcept { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

    // Largest magnitude of 32 floats; NaN if one of them is.
    static float largest_of_32(const float* x) noexcept { return largest_magnitude(x, 32); }
    // codes = round(x * inverse), halves to even; the products must lie within +-127.
    static void quantize_32(const float* x, float inverse, int8_t* codes) noexcept {
        const __m256 scale = _mm256_set1_ps(inverse);
        __m256i q[4];
        for (int i = 0; i < 4; ++i) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), scale));
        const __m256i low = _mm256_packs_epi32(q[0], q[1]);
        const __m256i high = _mm256_packs_epi32(q[2], q[3]);
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        store(codes, _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
    }
    // sums[e][i]: over the codes j of eight e with j % 4 / 2 == i, of 32 codes.
    static void pair_sums(const int8_t* codes, int16_t (&sums)[4][2]) noexcept {
        __m256i v = _mm256_maddubs_epi16(_mm256_set1_epi8(1), load(codes));
        v = _mm256_add_epi16(v, _mm256_shuffle_epi32(v, 0xB1));
        alignas(32) int16_t pairs[4][4];
        store(pairs, v);
        for (int e = 0; e < 4; ++e) std::memcpy(sums[e], pairs[e], sizeof sums[e]);
    }

  private:
    // b in bytes whose top bit is set in `bits`, else a.
    static Bytes chosen(Bytes a, Bytes b, Bytes bits) noexcept { return _mm256_blendv_epi8(a, b, bits); }
    // Four int32 of each row: a transpose.
    static void interleave_int32(const unsigned char* const (&from)[kLanes], size_t at, unsigned char* to) noexcept {
        const auto two = [&](int row) {
            const auto* low = reinterpret_cast<const __m128i*>(from[row] + at);
            const auto* high = reinterpret_cast<const __m128i*>(from[row + 4] + at);
            return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
        };
        const __m256i a = two(0), b = two(1), c = two(2), d = two(3);
        const __m256i ab = _mm256_unpacklo_epi32(a, b), cd = _mm256_unpacklo_epi32(c, d);
        const __m256i ab2 = _mm256_unpackhi_epi32(a, b), cd2 = _mm256_unpackhi_epi32(c, d);
        store(to, _mm256_unpacklo_epi64(ab, cd));
        store(to + 32, _mm256_unpackhi_epi64(ab, cd));
        store(to + 64, _mm256_unpacklo_epi64(ab2, cd2));
        store(to + 96, _mm256_unpackhi_epi64(ab2, cd2));
    }
    // Eight int16 of each row: a transpose.
    static void interleave_int16(const unsigned char* const (&from)[kLanes], size_t at, unsigned char* to) noexcept {
        const auto row = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[r] + at)); };
        const auto elements = [&](__m128i rows01, __m128i rows23, __m128i rows45, __m128i rows67, unsigned char* four) {
            const __m128i low = _mm_unpacklo_epi32(rows01, rows23), low2 = _mm_unpacklo_epi32(rows45, rows67);
            const __m128i high = _mm_unpackhi_epi32(rows01, rows23), high2 = _mm_unpackhi_epi32(rows45, rows67);
            auto* out = reinterpret_cast<__m128i*>(four);
            _mm_storeu_si128(out, _mm_unpacklo_epi64(low, low2));
            _mm_storeu_si128(out + 1, _mm_unpackhi_epi64(low, low2));
            _mm_storeu_si128(out + 2, _mm_unpacklo_epi64(high, high2));
            _mm_storeu_si128(out + 3, _mm_unpackhi_epi64(high, high2));
        };
        const __m128i a = row(0), b = row(1), c = row(2), d = row(3), e = row(4), f = row(5), g = row(6), h = row(7);
        elements(_mm_unpacklo_epi16(a, b), _mm_unpacklo_epi16(c, d), _mm_unpacklo_epi16(e, f), _mm_unpacklo_epi16(g, h),
                 to);
        elements(_mm_unpackhi_epi16(a, b), _mm_unpackhi_epi16(c, d), _mm_unpackhi_epi16(e, f), _mm_unpackhi_epi16(g, h),
                 to + 64);
    }
    // Eight bytes of each row.
    static void interleave_bytes(const unsigned char* const (&from)[kLanes], size_t at, unsigned char* to) noexcept {
        const auto two = [&](int row) {
            const auto* even = reinterpret_cast<const __m128i*>(from[row] + at);
            const auto* odd = reinterpret_cast<const __m128i*>(from[row + 1] + at);
            return _mm_unpacklo_epi8(_mm_loadl_epi64(even), _mm_loadl_epi64(odd));
        };
        const __m128i a = two(0), b = two(2), c = two(4), d = two(6);
        const __m128i ab = _mm_unpacklo_epi16(a, b), cd = _mm_unpacklo_epi16(c, d);
        const __m128i ab2 = _mm_unpackhi_epi16(a, b), cd2 = _mm_unpackhi_epi16(c, d);
        auto* out = reinterpret_cast<__m128i*>(to);
        _mm_storeu_si128(out, _mm_unpacklo_epi32(ab, cd));
        _mm_storeu_si128(out + 1, _mm_unpackhi_epi32(ab, cd));
        _mm_storeu_si128(out + 2, _mm_unpacklo_epi32(ab2, cd2));
        _mm_storeu_si128(out + 3, _mm_unpackhi_epi32(ab2, cd2));
    }
    // Keeps the compiler from regrouping a chain of integer additions: it would first compute all products, which do
    // not fit the registers.
    static __m256i in_order(__m256i v) noexcept {
        asm("" : "+x"(v));
        return v;
    }
};

}  // namespace tessera::cpu::isa
