// simt.hpp for the emulator: compiled for the host with -fsanitize=thread, whose calls the emulator serves. What
// follows is kept out of that instrumentation; it tells the emulator itself what it touches.
#pragma once

#include <tessera/cuda/emulated_interface.hpp>

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>
#include <utility>

#define SIMT_DEVICE inline
// The build looks for the mark in the preprocessed source, to learn the names of the kernels.
#ifdef TSR_CUDA_FIND_KERNELS
#define SIMT_KERNEL(threads, blocks) extern "C" SIMT_KERNEL_FOLLOWS void
#else
#define SIMT_KERNEL(threads, blocks) extern "C" __attribute__((noinline, visibility("hidden"))) void
#endif
// The lambda's own type makes the key of each array its own.
#define SIMT_SHARED(T, name, count)      \
    T(&name)                             \
    [count] = *static_cast<T(*)[count]>( \
        ::simt::emulated::static_shared<decltype([] {})>(sizeof(T) * (count), alignof(T) < 16 ? 16 : alignof(T)))
#define SIMT_DYNAMIC_SHARED(name) unsigned char* const name = ::simt::emulated::dynamic_shared()
#define SIMT_UNROLL
#define SIMT_KEEP_LOOP

#define SIMT_UNWATCHED __attribute__((no_sanitize("thread"), noinline))
#define SIMT_HERE const char *file = __builtin_FILE(), unsigned line = __builtin_LINE()

extern "C" __attribute__((const, visibility("hidden"))) const simt::emulated::Position* tessera_emulated_position();

namespace simt {
namespace emulated {

extern __attribute__((visibility("hidden"))) const Interface* table;

template <class Key>
inline constexpr char kKey = 0;

template <class Key>
SIMT_UNWATCHED void* static_shared(uint64_t bytes, uint64_t alignment) {
    return table->shared(&kKey<Key>, bytes, alignment);
}
SIMT_UNWATCHED inline unsigned char* dynamic_shared() {
    return static_cast<unsigned char*>(table->dynamic_shared());
}

// What Kernel::run does for a function of these parameters.
template <auto Function>
struct Entry;
template <class... Arguments, void (*Function)(Arguments...)>
struct Entry<Function> {
    static_assert((std::is_trivially_copyable_v<Arguments> && ...), "arguments of a kernel are copied as bytes");
    static constexpr uint32_t kCount = sizeof...(Arguments);
    static constexpr uint32_t kBytes[kCount + 1] = {sizeof(Arguments)..., 0};

    template <size_t... I>
    SIMT_UNWATCHED static void call([[maybe_unused]] void* const* parameters, std::index_sequence<I...>) {
        Function(*static_cast<const Arguments*>(parameters[I])...);
    }
    SIMT_UNWATCHED static void run(void* const* parameters) {
        call(parameters, std::index_sequence_for<Arguments...>{});
    }
    static constexpr Kernel named(const char* name) { return {name, run, kCount, kBytes}; }
};

}  // namespace emulated

struct Index {
    unsigned x, y, z;
};
SIMT_UNWATCHED inline Index thread_index() {
    const emulated::Position& p = *tessera_emulated_position();
    return {p.thread[0], p.thread[1], p.thread[2]};
}
SIMT_UNWATCHED inline Index block_index() {
    const uint32_t* const i = tessera_emulated_position()->block;
    return {i[0], i[1], i[2]};
}
SIMT_UNWATCHED inline Index block_size() {
    const uint32_t* const i = tessera_emulated_position()->block_size;
    return {i[0], i[1], i[2]};
}
SIMT_UNWATCHED inline Index grid_size() {
    const uint32_t* const i = tessera_emulated_position()->grid_size;
    return {i[0], i[1], i[2]};
}
SIMT_UNWATCHED inline unsigned lane() {
    return tessera_emulated_position()->thread[0] % 32;
}
SIMT_UNWATCHED inline unsigned warp() {
    return tessera_emulated_position()->thread[0] / 32;
}
// Of the card: what SIMT_ARCH was compiled for runs on any later one.
SIMT_UNWATCHED inline unsigned arch() {
    return tessera_emulated_position()->arch;
}

// ---- 16-bit floats ----

struct half_t {
    uint16_t bits;
};
struct bfloat16_t {
    uint16_t bits;
};

inline float to_float(half_t value) {
    return static_cast<float>(__builtin_bit_cast(_Float16, value));
}
inline float to_float(bfloat16_t value) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(value.bits) << 16);
}

template <class T>
T from_float(float value);
template <>
inline half_t from_float<half_t>(float value) {
    return __builtin_bit_cast(half_t, static_cast<_Float16>(value));
}
template <>
inline bfloat16_t from_float<bfloat16_t>(float value) {
    const auto bits = __builtin_bit_cast(uint32_t, value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40u)};
    return {static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16)};
}

template <class T>
uint32_t pack(float low, float high) {
    return from_float<T>(low).bits | static_cast<uint32_t>(from_float<T>(high).bits) << 16;
}
template <class T>
float unpack_low(uint32_t pair) {
    return to_float(T{static_cast<uint16_t>(pair)});
}
template <class T>
float unpack_high(uint32_t pair) {
    return to_float(T{static_cast<uint16_t>(pair >> 16)});
}

// The sum is exact in f64 or so far from half way between two f16 that its rounding does not show.
inline uint32_t fma_halves(uint32_t a, uint32_t b, uint32_t c) {
    const auto number = [](uint32_t pair, int shift) {
        return static_cast<double>(__builtin_bit_cast(_Float16, static_cast<uint16_t>(pair >> shift)));
    };
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += 16) {
        const double exact = number(a, shift) * number(b, shift) + number(c, shift);
        result |= static_cast<uint32_t>(__builtin_bit_cast(uint16_t, static_cast<_Float16>(exact))) << shift;
    }
    return result;
}

// ---- order ----

inline constexpr unsigned kFullWarp = 0xFFFFFFFFu;

SIMT_UNWATCHED inline void sync_block(SIMT_HERE) {
    emulated::table->sync_block({file, "sync_block", line});
}
// All lanes come, whatever the mask says: on Pascal a warp is converged or has gone wrong.
SIMT_UNWATCHED inline void sync_warp(unsigned = kFullWarp, SIMT_HERE) {
    emulated::table->warp(emulated::WarpOperation::kSync, nullptr, {file, "sync_warp", line});
}
SIMT_UNWATCHED inline void named_barrier_sync(unsigned id, unsigned threads, SIMT_HERE) {
    emulated::table->named_barrier(id, threads, true, {file, "named_barrier_sync", line});
}
SIMT_UNWATCHED inline void named_barrier_arrive(unsigned id, unsigned threads, SIMT_HERE) {
    emulated::table->named_barrier(id, threads, false, {file, "named_barrier_arrive", line});
}
SIMT_UNWATCHED inline void fence_block() {
    emulated::table->fence(false);
}
SIMT_UNWATCHED inline void fence_device() {
    emulated::table->fence(true);
}

// ---- warps ----

namespace emulated {
template <class T>
SIMT_UNWATCHED T exchange(T value, uint32_t source, const Site& site) {
    static_assert(sizeof(T) == 4, "32 bits are exchanged");
    Shuffle shuffle{__builtin_bit_cast(uint32_t, value), source % 32};
    table->warp(WarpOperation::kShuffle, &shuffle, site);
    return __builtin_bit_cast(T, shuffle.value);
}
SIMT_UNWATCHED inline uint32_t vote(bool predicate, const Site& site) {
    Ballot ballot{predicate, 0};
    table->warp(WarpOperation::kBallot, &ballot, site);
    return ballot.result;
}
}  // namespace emulated

template <class T>
SIMT_UNWATCHED T shuffle(T value, int from, SIMT_HERE) {
    return emulated::exchange(value, static_cast<uint32_t>(from), {file, "shuffle", line});
}
template <class T>
SIMT_UNWATCHED T shuffle_xor(T value, int mask, SIMT_HERE) {
    const uint32_t own = tessera_emulated_position()->lane, source = own ^ static_cast<uint32_t>(mask);
    return emulated::exchange(value, source < 32 ? source : own, {file, "shuffle_xor", line});
}
template <class T>
SIMT_UNWATCHED T shuffle_down(T value, int delta, SIMT_HERE) {
    const uint32_t own = tessera_emulated_position()->lane, source = own + static_cast<uint32_t>(delta);
    return emulated::exchange(value, source < 32 ? source : own, {file, "shuffle_down", line});
}
// One operation of the warp, for the sake of speed: five shuffles change fibers five times as often.
SIMT_UNWATCHED inline float reduce_sum(float value, SIMT_HERE) {
    emulated::Reduction reduction{value};
    emulated::table->warp(emulated::WarpOperation::kSum, &reduction, {file, "reduce_sum", line});
    return reduction.value;
}
SIMT_UNWATCHED inline float reduce_maximum(float value, SIMT_HERE) {
    emulated::Reduction reduction{value};
    emulated::table->warp(emulated::WarpOperation::kMaximum, &reduction, {file, "reduce_maximum", line});
    return reduction.value;
}
SIMT_UNWATCHED inline bool vote_any(bool predicate, SIMT_HERE) {
    return emulated::vote(predicate, {file, "vote_any", line}) != 0;
}
SIMT_UNWATCHED inline bool vote_all(bool predicate, SIMT_HERE) {
    return emulated::vote(!predicate, {file, "vote_all", line}) == 0;
}
SIMT_UNWATCHED inline unsigned vote_ballot(bool predicate, SIMT_HERE) {
    return emulated::vote(predicate, {file, "vote_ballot", line});
}

// ---- products ----

template <int Arch = SIMT_ARCH>
inline int dp4a(int a, int b, int c) {
    static_assert(Arch >= 610, "dp4a needs compute capability 6.1");
    for (int shift = 0; shift < 32; shift += 8) c += static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift);
    return c;
}

template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void ldmatrix_x4(uint32_t (&r)[4], const void* shared, SIMT_HERE) {
    static_assert(Arch >= 800, "ldmatrix is used from compute capability 8.0 on");
    emulated::Ldmatrix load{r, shared, false};
    emulated::table->warp(emulated::WarpOperation::kLdmatrix, &load, {file, "ldmatrix_x4", line});
}
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void ldmatrix_x4_transposed(uint32_t (&r)[4], const void* shared, SIMT_HERE) {
    static_assert(Arch >= 800, "ldmatrix is used from compute capability 8.0 on");
    emulated::Ldmatrix load{r, shared, true};
    emulated::table->warp(emulated::WarpOperation::kLdmatrix, &load, {file, "ldmatrix_x4_transposed", line});
}

template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_f16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    emulated::Mma product{c, a, {b[0], b[1]}};
    emulated::table->warp(emulated::WarpOperation::kMmaF16, &product, {file, "mma_f16", line});
}
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_bf16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    emulated::Mma product{c, a, {b[0], b[1]}};
    emulated::table->warp(emulated::WarpOperation::kMmaBf16, &product, {file, "mma_bf16", line});
}
// m16n8k8: the first half of the fragments of m16n8k16.
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_f16_k8(float (&c)[4], const uint32_t (&a)[2], uint32_t b, SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k8 is used from compute capability 8.0 on");
    const uint32_t wide[4] = {a[0], a[1], 0, 0};
    emulated::Mma product{c, wide, {b, 0}};
    emulated::table->warp(emulated::WarpOperation::kMmaF16, &product, {file, "mma_f16_k8", line});
}
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_bf16_k8(float (&c)[4], const uint32_t (&a)[2], uint32_t b, SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k8 is used from compute capability 8.0 on");
    const uint32_t wide[4] = {a[0], a[1], 0, 0};
    emulated::Mma product{c, wide, {b, 0}};
    emulated::table->warp(emulated::WarpOperation::kMmaBf16, &product, {file, "mma_bf16_k8", line});
}
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_s8(int (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k32 needs compute capability 8.0");
    emulated::Mma product{c, a, {b[0], b[1]}};
    emulated::table->warp(emulated::WarpOperation::kMmaS8, &product, {file, "mma_s8", line});
}

template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_s8_to(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const int (&c)[4],
                              SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k32 needs compute capability 8.0");
    for (int i = 0; i < 4; ++i) d[i] = c[i];
    emulated::Mma product{d, a, {b[0], b[1]}};
    emulated::table->warp(emulated::WarpOperation::kMmaS8, &product, {file, "mma_s8_to", line});
}
// Fragments are those of the first half of m16n8k32.
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void mma_s8_k16_to(int (&d)[4], const uint32_t (&a)[2], uint32_t b, const int (&c)[4], SIMT_HERE) {
    static_assert(Arch >= 800, "mma m16n8k16 needs compute capability 8.0");
    for (int i = 0; i < 4; ++i) d[i] = c[i];
    const uint32_t wide[4] = {a[0], a[1], 0, 0};
    emulated::Mma product{d, wide, {b, 0}};
    emulated::table->warp(emulated::WarpOperation::kMmaS8, &product, {file, "mma_s8_k16_to", line});
}

// ---- asynchronous copies ----

template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void copy_async16(void* shared, const void* global, int bytes = 16, SIMT_HERE) {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    emulated::table->copy_async(shared, global, static_cast<uint32_t>(bytes), {file, "copy_async16", line});
}
template <int Arch = SIMT_ARCH>
SIMT_UNWATCHED void copy_async_commit() {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    emulated::table->copy_async_commit();
}
template <int N, int Arch = SIMT_ARCH>
SIMT_UNWATCHED void copy_async_wait() {
    static_assert(Arch >= 800, "cp.async needs compute capability 8.0");
    emulated::table->copy_async_wait(N);
}

// ---- atomics ----

SIMT_UNWATCHED inline int atomic_add(int* to, int value) {
    emulated::table->atomic(to, 4, 0, __builtin_return_address(0));
    return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}
SIMT_UNWATCHED inline unsigned atomic_add(unsigned* to, unsigned value) {
    emulated::table->atomic(to, 4, 0, __builtin_return_address(0));
    return __atomic_fetch_add(to, value, __ATOMIC_SEQ_CST);
}
SIMT_UNWATCHED inline unsigned atomic_cas(unsigned* to, unsigned compare, unsigned value) {
    emulated::table->atomic(to, 4, 0, __builtin_return_address(0));
    __atomic_compare_exchange_n(to, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return compare;
}
namespace emulated {
// Replaces what is there by `change(what is there)`, which is returned.
template <class T, class Change>
SIMT_UNWATCHED T update(T* to, const Change& change, const void* pc) {
    table->atomic(to, sizeof(T), 0, pc);
    T old;
    __atomic_load(to, &old, __ATOMIC_SEQ_CST);
    for (;;) {
        T next = change(old);
        if (__atomic_compare_exchange(to, &old, &next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return old;
    }
}
}  // namespace emulated
SIMT_UNWATCHED inline float atomic_add(float* to, float value) {
    return emulated::update(
        to, [value](float old) { return old + value; }, __builtin_return_address(0));
}
SIMT_UNWATCHED inline int atomic_max(int* to, int value) {
    return emulated::update(
        to, [value](int old) { return old > value ? old : value; }, __builtin_return_address(0));
}
SIMT_UNWATCHED inline unsigned atomic_max(unsigned* to, unsigned value) {
    return emulated::update(
        to, [value](unsigned old) { return old > value ? old : value; }, __builtin_return_address(0));
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
SIMT_UNWATCHED T load_global(const void* from) {
    static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
    emulated::table->access(from, sizeof(T), emulated::kRead | emulated::kReadOnly, __builtin_return_address(0));
    T value;
    __builtin_memcpy(&value, from, sizeof(T));
    return value;
}
template <class T>
SIMT_UNWATCHED void store_global(void* to, T value) {
    static_assert(sizeof(T) == alignof(T) && sizeof(T) <= 16);
    emulated::table->access(to, sizeof(T), emulated::kWrite, __builtin_return_address(0));
    __builtin_memcpy(to, &value, sizeof(T));
}

// ---- arithmetic ----

using ::exp2f;
using ::expf;
using ::sqrtf;
inline float rsqrtf(float x) {
    return 1.0f / ::sqrtf(x);
}
inline float rcp(float x) {
    return 1.0f / x;
}
using ::fabsf;
using ::fmaf;
using ::fmaxf;
using ::fminf;
using ::roundf;
// Saturates; 0 for what is not a number.
inline int convert_to_int(float a) {
    if (a != a) return 0;
    if (a >= 2147483648.0f) return 2147483647;
    if (a < -2147483648.0f) return -2147483647 - 1;
    return static_cast<int>(::nearbyintf(a));
}
inline uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
    const uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; ++i) {
        uint32_t byte = static_cast<uint32_t>(bytes >> 8 * (selector >> 4 * i & 7u)) & 0xFFu;
        if (selector >> 4 * i & 8u) byte = byte >> 7 ? 0xFFu : 0;
        result |= byte << 8 * i;
    }
    return result;
}
inline uint32_t multiply_high(uint32_t a, uint32_t b) {
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
}
template <class To, class From>
To bits_as(const From& from) {
    return __builtin_bit_cast(To, from);
}
template <class T>
T minimum(T a, T b) {
    return a < b ? a : b;
}
template <class T>
T maximum(T a, T b) {
    return a > b ? a : b;
}

}  // namespace simt
