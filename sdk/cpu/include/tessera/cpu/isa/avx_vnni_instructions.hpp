// Single instructions of AVX-VNNI, the encoding of VNNI on processors without AVX-512, as assembly: why is said in
// avx512_instructions.hpp. Tests put a file of this name, in intrinsics of AVX2, in its place.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tessera::cpu::isa::avx_vnni {

// sums + products of four unsigned with four signed bytes a lane.
inline __m256i add_byte_products(__m256i sums, __m256i unsigned_bytes, __m256i signed_bytes) noexcept {
    asm("%{vex%} vpdpbusd %[b], %[a], %[s]" : [s] "+x"(sums) : [a] "x"(unsigned_bytes), [b] "x"(signed_bytes));
    return sums;
}

// A step of dot products: sums[v] += the products of the two int16 at p with the two of each lane of lanes[v].
template <int V>
inline void accumulate(__m256i (&sums)[V], const __m256i (&lanes)[V], const int16_t* p) noexcept {
    static_assert(V == 1 || V == 2);
    const auto& pair = *reinterpret_cast<const int16_t(*)[2]>(p);
    // Copies, because GCC keeps an array in memory if assembly names its elements.
    __m256i s = sums[0], x;
    const __m256i a = lanes[0];
    if constexpr (V == 1) {
        asm("vpbroadcastd %[p], %[x]\n\t%{vex%} vpdpwssd %[x], %[a], %[s]"
            : [s] "+x"(s), [x] "=&x"(x)
            : [a] "x"(a), [p] "m"(pair));
    } else {
        __m256i t = sums[1];
        const __m256i b = lanes[1];
        asm("vpbroadcastd %[p], %[x]\n\t%{vex%} vpdpwssd %[x], %[a], %[s]\n\t%{vex%} vpdpwssd %[x], %[b], %[t]"
            : [s] "+&x"(s), [t] "+x"(t), [x] "=&x"(x)
            : [a] "x"(a), [b] "x"(b), [p] "m"(pair));
        sums[1] = t;
    }
    sums[0] = s;
}

// The same of the four signed bytes at p with the four unsigned ones of each lane.
template <int V>
inline void accumulate_bytes(__m256i (&sums)[V], const __m256i (&lanes)[V], const int8_t* p) noexcept {
    static_assert(V == 1 || V == 2);
    const auto& four = *reinterpret_cast<const int8_t(*)[4]>(p);
    __m256i s = sums[0], x;
    const __m256i a = lanes[0];
    if constexpr (V == 1) {
        asm("vpbroadcastd %[p], %[x]\n\t%{vex%} vpdpbusd %[x], %[a], %[s]"
            : [s] "+x"(s), [x] "=&x"(x)
            : [a] "x"(a), [p] "m"(four));
    } else {
        __m256i t = sums[1];
        const __m256i b = lanes[1];
        asm("vpbroadcastd %[p], %[x]\n\t%{vex%} vpdpbusd %[x], %[a], %[s]\n\t%{vex%} vpdpbusd %[x], %[b], %[t]"
            : [s] "+&x"(s), [t] "+x"(t), [x] "=&x"(x)
            : [a] "x"(a), [b] "x"(b), [p] "m"(four));
        sums[1] = t;
    }
    sums[0] = s;
}

// The same of four unsigned bytes at p with a lane's signed ones.
inline void accumulate_signed_bytes(__m256i& sum, __m256i lanes, const uint8_t* p) noexcept {
    const auto& four = *reinterpret_cast<const uint8_t(*)[4]>(p);
    __m256i s = sum, x;
    asm("vpbroadcastd %[p], %[x]\n\t%{vex%} vpdpbusd %[a], %[x], %[s]"
        : [s] "+x"(s), [x] "=&x"(x)
        : [a] "x"(lanes), [p] "m"(four));
    sum = s;
}

}  // namespace tessera::cpu::isa::avx_vnni
