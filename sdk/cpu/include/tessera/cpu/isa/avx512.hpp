// The ISA policies of AVX-512 (F, BW, DQ, VL), without and with VNNI: what products of panels need of a vector unit.
// Groups of packed rows are read by AVX2's policy; a vector here takes two of them. What an operation means is said
// there (avx2.hpp). Integer sums are exact at both levels and additions of floats keep their order, so products have
// the same bits as on AVX2.
#pragma once

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/isa/avx512_instructions.hpp>

#include <immintrin.h>

#include <cstdint>

namespace tessera::cpu::isa {

// What both levels share.
struct Avx512Lanes {
    using Rows = Avx2;
    static constexpr int kLanes = 16;
    static constexpr int kGroupLanes = Avx2::kGroupLanes;
    static constexpr int kPanelGroups = 4;

    using Bytes = __m512i;
    using Ints = __m512i;
    using Floats = __m512;
    using Sums = __m512i;

    static Bytes load(const void* p) noexcept { return _mm512_loadu_si512(p); }
    // The same four bytes in every lane.
    static Bytes broadcast4(const void* p) noexcept {
        int32_t four;
        std::memcpy(&four, p, 4);
        return _mm512_set1_epi32(four);
    }

    static Ints add_lanes(Ints a, Ints b) noexcept { return _mm512_add_epi32(a, b); }
    static Floats to_floats(Ints v) noexcept { return _mm512_cvtepi32_ps(v); }
    static Floats load_floats(const float* p) noexcept { return _mm512_loadu_ps(p); }
    static void store_floats(float* p, Floats v) noexcept { _mm512_storeu_ps(p, v); }
    static Floats broadcast(const float* p) noexcept { return _mm512_set1_ps(*p); }
    static Floats multiply(Floats a, Floats b) noexcept { return _mm512_mul_ps(a, b); }
    static Floats add(Floats a, Floats b) noexcept { return _mm512_add_ps(a, b); }
    static Floats fma(Floats a, Floats b, Floats c) noexcept { return _mm512_fmadd_ps(a, b, c); }

  protected:
    // Sums of the two int16 of each lane, times `factor`.
    static Ints pair_sums(Ints pairs, int16_t factor) noexcept {
        return _mm512_madd_epi16(pairs, _mm512_set1_epi16(factor));
    }
};

struct Avx512 : Avx512Lanes {
    static constexpr bool kShortSums = true;
    // Two wrapping 16-bit sums a lane.
    static Sums start(const int16_t* pair) noexcept { return broadcast4(pair); }
    static Sums dot(Sums sums, Bytes unsigned_codes, Bytes signed_codes) noexcept {
        return avx512::in_order(_mm512_add_epi16(sums, _mm512_maddubs_epi16(unsigned_codes, signed_codes)));
    }
    static Ints total(Sums sums) noexcept { return pair_sums(sums, 1); }
    static Ints scaled_total(Sums sums, Ints scale) noexcept { return _mm512_madd_epi16(sums, scale); }

    static Ints zero() noexcept { return _mm512_setzero_si512(); }
    static Ints start_signed(const int16_t*) noexcept { return zero(); }
    static Ints dot_signed(Ints sums, Bytes a, Bytes b) noexcept {
        return dot_signed_scaled(sums, a, b, _mm512_set1_epi16(1));
    }
    static Ints dot_signed_scaled(Ints sums, Bytes a, Bytes b, Ints scale) noexcept {
        return avx512::in_order(_mm512_add_epi32(sums, _mm512_madd_epi16(pair_products(a, b), scale)));
    }

  private:
    // a times b of signed bytes, two a sum. There is no instruction that transfers signs: what is multiplied with a
    // negative code is subtracted from zero.
    static Ints pair_products(Bytes a, Bytes b) noexcept {
        const __mmask64 negative = _mm512_movepi8_mask(a);
        return _mm512_maddubs_epi16(_mm512_abs_epi8(a), _mm512_mask_sub_epi8(b, negative, _mm512_setzero_si512(), b));
    }
};

struct Avx512Vnni : Avx512Lanes {
    static constexpr bool kShortSums = false;
    // One 32-bit sum a lane.
    static Sums start(const int16_t* pair) noexcept { return pair_sums(broadcast4(pair), 1); }
    static Sums start_of_group(const int32_t* sum) noexcept { return broadcast4(sum); }
    static Sums dot(Sums sums, Bytes unsigned_codes, Bytes signed_codes) noexcept {
        return avx512::add_byte_products(sums, unsigned_codes, signed_codes);
    }
    static Ints total(Sums sums) noexcept { return sums; }
    static Ints scaled_total(Sums sums, Ints scale) noexcept {
        return _mm512_mullo_epi32(sums, _mm512_srai_epi32(scale, 16));
    }

    // Signed codes are multiplied as unsigned ones, 128 larger. What that adds is taken from the sums beforehand: they
    // begin at 16 times what a centre of 8 gives, which signed formats therefore name as theirs.
    static Ints start_signed(const int16_t* pair) noexcept { return pair_sums(broadcast4(pair), 16); }
    static Ints dot_signed(Ints sums, Bytes a, Bytes b) noexcept {
        return avx512::add_byte_products(sums, _mm512_xor_si512(a, _mm512_set1_epi8(-128)), b);
    }
};

}  // namespace tessera::cpu::isa
