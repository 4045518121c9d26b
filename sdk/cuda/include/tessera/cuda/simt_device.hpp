// simt.hpp for GPUs: compiled by NVRTC, without a header of NVIDIA's. Instructions are those of the PTX ISA manual.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef __CUDACC_RTC__
#error "compiled for a GPU by tessera-cuda-compile; for the CPU define TSR_CUDA_EMULATED"
#endif

#define SIMT_DEVICE __device__ __forceinline__
#define SIMT_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
#define SIMT_SHARED(T, name, count) __shared__ T name[count]
#define SIMT_DYNAMIC_SHARED(name) extern __shared__ __align__(128) unsigned char name[]
#define SIMT_UNROLL _Pragma("unroll")
#define SIMT_KEEP_LOOP _Pragma("unroll 1")

// Tells the emulated driver which module an image is, and for which virtual architecture it was compiled.
#define SIMT_JOINED(a, b) a##b
#define SIMT_JOIN(a, b) SIMT_JOINED(a, b)
extern "C" __device__ unsigned SIMT_JOIN(tessera_module_, SIMT_MODULE) = SIMT_ARCH;

namespace simt {

struct Index {
    unsigned x, y, z;
};
SIMT_DEVICE Index thread_index() {
    return {threadIdx.x, threadIdx.y, threadIdx.z};
}
SIMT_DEVICE Index block_index() {
    return {blockIdx.x, blockIdx.y, blockIdx.z};
}
SIMT_DEVICE Index block_size() {
    return {blockDim.x, blockDim.y, blockDim.z};
}
SIMT_DEVICE Index grid_size() {
    return {gridDim.x, gridDim.y, gridDim.z};
}
// The virtual architecture, as a value.
SIMT_DEVICE int arch() {
    return SIMT_ARCH;
}
SIMT_DEVICE unsigned lane() {
    return threadIdx.x % 32;
}
SIMT_DEVICE unsigned warp() {
    return threadIdx.x / 32;
}

// ---- 16-bit floats ----

struct half_t {
    uint16_t bits;
};
struct bfloat16_t {
    uint16_t bits;
};

SIMT_DEVICE float to_float(half_t value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}
SIMT_DEVICE float to_float(bfloat16_t value) {
    return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}

template <class T>
SIMT_DEVICE T from_float(float value);
template <>
SIMT_DEVICE half_t from_float<half_t>(float value) {
    half_t narrow;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
    return narrow;
}
template <>
SIMT_DEVICE bfloat16_t from_float<bfloat16_t>(float value) {
    const unsigned bits = __float_as_uint(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
    return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}

template <class T>
SIMT_DEVICE uint32_t pack(float low, float high) {
    return from_float<T>(low).bits | static_cast<uint32_t>(from_float<T>(high).bits) << 16;
}
template <class T>
SIMT_DEVICE float unpack_low(uint32_t pair) {
    return to_float(T{static_cast<uint16_t>(pair)});
}
template <class T>
SIMT_DEVICE float unpack_high(uint32_t pair) {
    return to_float(T{static_cast<uint16_t>(pair >> 16)});
}

SIMT_DEVICE uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
    return result;
}

// ---- order ----

inline constexpr unsigned kFullWarp = 0xFFFFFFFFu;

SIMT_DEVICE void sync_block() {
    __syncthreads();
}
SIMT_DEVICE void sync_warp(unsigned mask = kFullWarp) {
    __syncwarp(mask);
}
SIMT_DEVICE void named_barrier_sync(unsigned id, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
SIMT_DEVICE void named_barrier_arrive(unsigned id, unsigned threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
SIMT_DEVICE void fence_block() {
    __threadfence_block();
}
SIMT_DEVICE void fence_device() {
    __threadfence();
}

// ---- warps ----

template <class T>
SIMT_DEVICE T shuffle(T value, int from) {
    return __shfl_sync(kFullWarp, value, from);
}
template <class T>
SIMT_DEVICE T shuffle_xor(T value, int mask) {
    return __shfl_xor_sync(kFullWarp, value, mask);
}
template <class T>
SIMT_DEVICE T shuffle_down(T value, int delta) {
    return __shfl_down_sync(kFullWarp, value, static_cast<unsigned>(delta));
}
SIMT_DEVICE float reduce_sum(float value) {
    SIMT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
    return value;
}
SIMT_DEVICE float reduce_maximum(float value) {
    SIMT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) value = ::fmaxf(value, shuffle_xor(value, mask));
    return value;
}
SIMT_DEVICE bool vote_any(bool predicate) {
    return __any_sync(kFullWarp, predicate) != 0;
}
SIMT_DEVICE bool vote_all(bool predicate) {
    return __all_sync(kFullWarp, predicate) != 0;
}
SIMT_DEVICE unsigned vote_ballot(bool predicate) {
    return __ballot_sync(kFullWarp, predicate);
}

// ---- products ----

// The default argument makes a call in code that the architecture does not reach harmless (if constexpr), and any other
// one an error.
template <int Arch = SIMT_ARCH>
SIMT_DEVICE int dp4a(int a, int b, int c) {
    static_assert(Arch >= 610, "dp4a needs compute capability 6.1");
    asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(c) : "r"(a), "r"(b), "r"(c));
    return c;
}

SIMT_DEVICE unsigned shared_address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

template <int Arch = SIMT_ARCH>
SIMT_DEVICE void ldmatrix_x4(uint32_t (&r)[4], const void* shared) {
    static_assert(Arch >= 800, "ldmatrix is used from compute capability 8.0 on");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(shared))
                 : "memory");
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void ldmatrix_x4_transposed(uint32_t (&r)[4], const void* shared) {
    static_assert(Arch >= 800, "ldmatrix is used from compute capability 8.0 on");
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(shared_address(shared))
                 : "memory");
}

// c += a b. Fragments are those of the PTX ISA manual for the shape: a row-major, b column-major.
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// m16n8k8: the first half of the fragments of m16n8k16.
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_f16_k8(float (&c)[4], const uint32_t (&a)[2], uint32_t b) {
    static_assert(Arch >= 800, "mma m16n8k8 is used from compute capability 8.0 on");
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_bf16_k8(float (&c)[4], const uint32_t (&a)[2], uint32_t b) {
    static_assert(Arch >= 800, "mma m16n8k8 is used from compute capability 8.0 on");
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_s8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    static_assert(Arch >= 800, "mma m16n8k32 needs compute capability 8.0");
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// d = a b + c.
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_s8_to(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const int (&c)[4]) {
    static_assert(Arch >= 800, "mma m16n8k32 needs compute capability 8.0");
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void mma_s8_k16_to(int (&d)[4], const uint32_t (&a)[2], uint32_t b, const int (&c)[4]) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}

// ---- asynchronous copies ----

template <int Arch = SIMT_ARCH>
SIMT_DEVICE void copy_async16(void* shared, const void* global, int bytes = 16) {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
                 "l"(__cvta_generic_to_global(global)), "r"(bytes)
                 : "memory");
}
template <int Arch = SIMT_ARCH>
SIMT_DEVICE void copy_async_commit() {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N, int Arch = SIMT_ARCH>
SIMT_DEVICE void copy_async_wait() {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ---- atomics ----

SIMT_DEVICE int atomic_add(int* to, int value) {
    return atomicAdd(to, value);
}
SIMT_DEVICE unsigned atomic_add(unsigned* to, unsigned value) {
    return atomicAdd(to, value);
}
SIMT_DEVICE float atomic_add(float* to, float value) {
    return atomicAdd(to, value);
}
SIMT_DEVICE int atomic_max(int* to, int value) {
    return atomicMax(to, value);
}
SIMT_DEVICE unsigned atomic_max(unsigned* to, unsigned value) {
    return atomicMax(to, value);
}
SIMT_DEVICE unsigned atomic_cas(unsigned* to, unsigned compare, unsigned value) {
    return atomicCAS(to, compare, value);
}

// ---- memory ----

struct alignas(8) UInt2 {
    uint32_t x, y;
};
struct alignas(16) UInt4 {
    uint32_t x, y, z, w;
};
struct alignas(8) Float2 {
    float x, y;
};
struct alignas(16) Float4 {
    float x, y, z, w;
};

template <class T>
SIMT_DEVICE T load_global(const void* from) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
    // volatile, for compilers move other assembly before the condition under which its operands are valid.
    const size_t at = __cvta_generic_to_global(from);
    if constexpr (sizeof(T) == 16) {
        UInt4 v;
        asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                     : "l"(at));
        return __builtin_bit_cast(T, v);
    } else if constexpr (sizeof(T) == 8) {
        UInt2 v;
        asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
        return __builtin_bit_cast(T, v);
    } else if constexpr (sizeof(T) == 4) {
        uint32_t v;
        asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(at));
        return __builtin_bit_cast(T, v);
    } else if constexpr (sizeof(T) == 2) {
        uint16_t v;
        asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(v) : "l"(at));
        return __builtin_bit_cast(T, v);
    } else {
        unsigned v;  // no register has 8 bits
        asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(v) : "l"(at));
        return __builtin_bit_cast(T, static_cast<uint8_t>(v));
    }
}

template <class T>
SIMT_DEVICE void store_global(void* to, T value) {
    static_assert(sizeof(T) == alignof(T) && sizeof(T) <= 16);
    *static_cast<T*>(to) = value;
}

// ---- arithmetic ----

using ::exp2f;
using ::expf;
using ::fabsf;
using ::fmaf;
using ::fmaxf;
using ::fminf;
using ::roundf;
using ::rsqrtf;
using ::sqrtf;

SIMT_DEVICE float rcp(float x) {
    return __frcp_rn(x);
}
SIMT_DEVICE int convert_to_int(float a) {
    return __float2int_rn(a);
}
SIMT_DEVICE uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
    // Not __byte_perm, which masks the sign bits of the selector.
    uint32_t result;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
    return result;
}
SIMT_DEVICE uint32_t multiply_high(uint32_t a, uint32_t b) {
    return __umulhi(a, b);
}
template <class To, class From>
SIMT_DEVICE To bits_as(const From& from) {
    return __builtin_bit_cast(To, from);
}
template <class T>
SIMT_DEVICE T minimum(T a, T b) {
    return a < b ? a : b;
}
template <class T>
SIMT_DEVICE T maximum(T a, T b) {
    return a > b ? a : b;
}

}  // namespace simt
