// Single instructions of AVX-512 and AVX512-VNNI, as assembly.
//
// Assembly, because code of several levels then lies in one library that is compiled for the lowest of them: the
// compiler never comes to use a higher level's instructions elsewhere, and an inline function that two files share is
// the same in both. And because GCC otherwise rotates sums through more registers than there are. Tests put a file of
// this name, in portable code, in its place.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tessera::cpu::isa::avx512 {

// Keeps the compiler from regrouping a chain of integer additions: it would first compute all products, which do not
// fit the registers.
inline __m512i in_order(__m512i v) noexcept {
    asm("" : "+v"(v));
    return v;
}

// VNNI: sums + products of four unsigned with four signed bytes a lane; sums + products of two int16 a lane.
inline __m512i add_byte_products(__m512i sums, __m512i unsigned_bytes, __m512i signed_bytes) noexcept {
    asm("vpdpbusd %[b], %[a], %[s]" : [s] "+v"(sums) : [a] "v"(unsigned_bytes), [b] "v"(signed_bytes));
    return sums;
}

// ---- Steps of dot products: sums[v] += lanes[v] * x, one operand of the cache against V vectors of lanes. ----

// x: the float at p.
template <int V>
inline void accumulate(__m512 (&sums)[V], const __m512 (&lanes)[V], const float* p) noexcept {
    static_assert(V == 1 || V == 2);
    // Copies, because GCC keeps an array in memory if assembly names its elements.
    __m512 s = sums[0];
    const __m512 a = lanes[0];
    if constexpr (V == 1) {
        asm("vfmadd231ps %[p]%{1to16%}, %[a], %[s]" : [s] "+v"(s) : [a] "v"(a), [p] "m"(*p));
    } else {
        __m512 t = sums[1], x;
        const __m512 b = lanes[1];
        asm("vbroadcastss %[p], %[x]\n\tvfmadd231ps %[a], %[x], %[s]\n\tvfmadd231ps %[b], %[x], %[t]"
            : [s] "+&v"(s), [t] "+v"(t), [x] "=&v"(x)
            : [a] "v"(a), [b] "v"(b), [p] "m"(*p));
        sums[1] = t;
    }
    sums[0] = s;
}

// x: the two int16 at p; each lane adds the products with its own two.
template <int V>
inline void accumulate(__m512i (&sums)[V], const __m512i (&lanes)[V], const int16_t* p) noexcept {
    static_assert(V == 1 || V == 2);
    const auto& pair = *reinterpret_cast<const int16_t(*)[2]>(p);
    __m512i s = sums[0], x;
    const __m512i a = lanes[0];
    if constexpr (V == 1) {
        asm("vpbroadcastd %[p], %[x]\n\tvpmaddwd %[a], %[x], %[x]\n\tvpaddd %[x], %[s], %[s]"
            : [s] "+v"(s), [x] "=&v"(x)
            : [a] "v"(a), [p] "m"(pair));
    } else {
        __m512i t = sums[1], y;
        const __m512i b = lanes[1];
        asm("vpbroadcastd %[p], %[x]\n\tvpmaddwd %[a], %[x], %[y]\n\tvpmaddwd %[b], %[x], %[x]\n\t"
            "vpaddd %[y], %[s], %[s]\n\tvpaddd %[x], %[t], %[t]"
            : [s] "+&v"(s), [t] "+v"(t), [x] "=&v"(x), [y] "=&v"(y)
            : [a] "v"(a), [b] "v"(b), [p] "m"(pair));
        sums[1] = t;
    }
    sums[0] = s;
}

// The same with VNNI.
template <int V>
inline void accumulate_vnni(__m512i (&sums)[V], const __m512i (&lanes)[V], const int16_t* p) noexcept {
    static_assert(V == 1 || V == 2);
    const auto& pair = *reinterpret_cast<const int16_t(*)[2]>(p);
    __m512i s = sums[0];
    const __m512i a = lanes[0];
    if constexpr (V == 1) {
        asm("vpdpwssd %[p]%{1to16%}, %[a], %[s]" : [s] "+v"(s) : [a] "v"(a), [p] "m"(pair));
    } else {
        __m512i t = sums[1], x;
        const __m512i b = lanes[1];
        asm("vpbroadcastd %[p], %[x]\n\tvpdpwssd %[a], %[x], %[s]\n\tvpdpwssd %[b], %[x], %[t]"
            : [s] "+&v"(s), [t] "+v"(t), [x] "=&v"(x)
            : [a] "v"(a), [b] "v"(b), [p] "m"(pair));
        sums[1] = t;
    }
    sums[0] = s;
}

// x: the four signed bytes at p; each lane adds the products with its own four, which are unsigned. VNNI.
template <int V>
inline void accumulate_bytes(__m512i (&sums)[V], const __m512i (&lanes)[V], const int8_t* p) noexcept {
    static_assert(V == 1 || V == 2);
    const auto& four = *reinterpret_cast<const int8_t(*)[4]>(p);
    __m512i s = sums[0];
    const __m512i a = lanes[0];
    if constexpr (V == 1) {
        asm("vpdpbusd %[p]%{1to16%}, %[a], %[s]" : [s] "+v"(s) : [a] "v"(a), [p] "m"(four));
    } else {
        __m512i t = sums[1], x;
        const __m512i b = lanes[1];
        asm("vpbroadcastd %[p], %[x]\n\tvpdpbusd %[x], %[a], %[s]\n\tvpdpbusd %[x], %[b], %[t]"
            : [s] "+&v"(s), [t] "+v"(t), [x] "=&v"(x)
            : [a] "v"(a), [b] "v"(b), [p] "m"(four));
        sums[1] = t;
    }
    sums[0] = s;
}

// The same of four unsigned bytes at p with a lane's signed ones.
inline void accumulate_signed_bytes(__m512i& sum, __m512i lanes, const uint8_t* p) noexcept {
    const auto& four = *reinterpret_cast<const uint8_t(*)[4]>(p);
    __m512i s = sum, x;
    asm("vpbroadcastd %[p], %[x]\n\tvpdpbusd %[a], %[x], %[s]"
        : [s] "+v"(s), [x] "=&v"(x)
        : [a] "v"(lanes), [p] "m"(four));
    sum = s;
}

}  // namespace tessera::cpu::isa::avx512
