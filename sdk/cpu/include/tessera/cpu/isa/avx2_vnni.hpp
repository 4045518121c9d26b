// The ISA policy of AVX2 with AVX-VNNI: what products of panels need of a vector unit. What an operation means is said
// in avx2.hpp. Integer sums are exact at both levels and additions of floats keep their order, so products have the
// same bits.
#pragma once

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/isa/avx_vnni_instructions.hpp>

namespace tessera::cpu::isa {

struct Avx2Vnni : Avx2 {
    static constexpr bool kShortSums = false;
    // One 32-bit sum a lane.
    static Sums start(const int16_t* pair) noexcept { return pair_sums(broadcast4(pair), 1); }
    static Sums start_of_group(const int32_t* sum) noexcept { return broadcast4(sum); }
    static Sums dot(Sums sums, Bytes unsigned_codes, Bytes signed_codes) noexcept {
        return avx_vnni::add_byte_products(sums, unsigned_codes, signed_codes);
    }
    static Ints total(Sums sums) noexcept { return sums; }
    static Ints scaled_total(Sums sums, Ints scale) noexcept {
        return _mm256_mullo_epi32(sums, _mm256_srai_epi32(scale, 16));
    }

    // Signed codes are multiplied as unsigned ones, 128 larger, as on AVX-512 with VNNI (avx512.hpp).
    static Ints start_signed(const int16_t* pair) noexcept { return pair_sums(broadcast4(pair), 16); }
    static Ints dot_signed(Ints sums, Bytes a, Bytes b) noexcept {
        return avx_vnni::add_byte_products(sums, _mm256_xor_si256(a, _mm256_set1_epi8(-128)), b);
    }

  private:
    // Sums of the two int16 of each lane, times `factor`.
    static Ints pair_sums(Ints pairs, int16_t factor) noexcept {
        return _mm256_madd_epi16(pairs, _mm256_set1_epi16(factor));
    }
};

}  // namespace tessera::cpu::isa
